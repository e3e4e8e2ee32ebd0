//! What the registry of recoveries makes of its list: one enum for what a recovery is told and
//! one for each of its halves, with a `match` behind every call.

/// Takes `module::Recovery` for every recovery; each implements [`super::Recovery`].
macro_rules! recoveries {
    ($($module:ident::$Recovery:ident),* $(,)?) => {
        $(pub use $module::$Recovery;)*

        /// Any of the recoveries, with what it is told.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum RecoveryConfig {
            $(#[doc = concat!("See [`", stringify!($Recovery), "`].")] $Recovery($Recovery)),*
        }

        $(impl From<$Recovery> for RecoveryConfig {
            fn from(recovery: $Recovery) -> RecoveryConfig {
                RecoveryConfig::$Recovery(recovery)
            }
        })*

        /// All recoveries, in the order of the registry.
        pub const RECOVERIES: &[RecoveryInfo] = &[$(<$Recovery as Recovery>::INFO),*];

        impl RecoveryConfig {
            /// The catalogue's line about it.
            pub fn info(&self) -> &'static RecoveryInfo {
                match self {
                    $(RecoveryConfig::$Recovery(_) => const { &<$Recovery as Recovery>::INFO }),*
                }
            }

            /// As [`Recovery::report_every`].
            pub fn report_every(&self) -> u32 {
                match self {
                    $(RecoveryConfig::$Recovery(recovery) => recovery.report_every()),*
                }
            }
            /// As [`Recovery::REPORTS`].
            pub fn reports(&self) -> bool {
                match self {
                    $(RecoveryConfig::$Recovery(_) => <$Recovery as Recovery>::REPORTS),*
                }
            }

            /// As [`RecoveryConfig::read`], with all options as they were understood.
            ///
            /// # Errors
            /// As [`RecoveryConfig::read`].
            pub fn resolve(
                name: &str,
                given: &[(&str, &str)],
            ) -> Result<(RecoveryConfig, ResolvedOptions), OptionError> {
                $(if name == <$Recovery as Recovery>::INFO.name {
                    let owner = format!("recovery {name:?}");
                    let mut options =
                        Options::new(&owner, <$Recovery as Recovery>::INFO.options, given)?;
                    let recovery = <$Recovery as Recovery>::read(&mut options)?;
                    return Ok((recovery.into(), options.resolve()?));
                })*
                let known: Vec<_> = RECOVERIES.iter().map(|info| info.name).collect();
                Err(OptionError::unknown("recovery", name, &known))
            }
        }

        /// The sending half of one queue pair. See [`SendHalf`] for the calls.
        #[derive(Clone, Debug)]
        pub enum Sender {
            $(#[doc = concat!("Of [`", stringify!($Recovery), "`].")]
            $Recovery(<$Recovery as Recovery>::Sender)),*
        }

        impl Sender {
            /// As [`Recovery::sender`].
            pub fn new(config: &RecoveryConfig, packets: u32) -> Sender {
                match config {
                    $(RecoveryConfig::$Recovery(recovery) => {
                        Sender::$Recovery(recovery.sender(packets))
                    })*
                }
            }
            /// As [`RecoveryInfo::rateless`].
            #[inline(always)]
            pub fn is_rateless(&self) -> bool {
                match self {
                    $(Sender::$Recovery(_) => {
                        const { <$Recovery as Recovery>::INFO.rateless }
                    })*
                }
            }
            /// As [`SendHalf::has_work`].
            #[inline(always)]
            pub fn has_work(&self) -> bool {
                match self { $(Sender::$Recovery(half) => half.has_work()),* }
            }
            /// As [`SendHalf::in_flight`].
            #[inline(always)]
            pub fn in_flight(&self) -> u32 {
                match self { $(Sender::$Recovery(half) => half.in_flight()),* }
            }
            /// As [`SendHalf::arrived`].
            pub fn arrived(&self) -> u32 {
                match self { $(Sender::$Recovery(half) => half.arrived()),* }
            }
            /// As [`SendHalf::beyond`].
            pub fn beyond(&self) -> u32 {
                match self { $(Sender::$Recovery(half) => half.beyond()),* }
            }
            /// As [`SendHalf::each_lost`].
            pub fn each_lost(&self, see: &mut dyn FnMut(u32)) {
                match self { $(Sender::$Recovery(half) => half.each_lost(see)),* }
            }
            /// As [`SendHalf::backlog`].
            pub fn backlog(&self) -> u32 {
                match self { $(Sender::$Recovery(half) => half.backlog()),* }
            }
            /// As [`SendHalf::on_report`], and whether everything is acknowledged now.
            pub fn on_report_done(
                &mut self,
                now: Time,
                report: &Report,
                window: Window,
            ) -> (Acknowledged, bool) {
                match self {
                    $(Sender::$Recovery(half) => {
                        (half.on_report(now, report, window), half.is_done())
                    })*
                }
            }
            /// As [`SendHalf::hear`].
            pub fn hear(&mut self, report: Option<&Report>) {
                match self { $(Sender::$Recovery(half) => half.hear(report)),* }
            }
            /// As [`SendHalf::on_request`].
            pub fn on_request(&mut self) {
                match self { $(Sender::$Recovery(half) => half.on_request()),* }
            }
            /// As [`SendHalf::is_quiet`].
            pub fn is_quiet(&self) -> bool {
                match self { $(Sender::$Recovery(half) => half.is_quiet()),* }
            }
            /// Whether there is something to send that a window of so many packets lets out.
            #[inline(always)]
            pub fn has_work_below(&self, window: u32) -> bool {
                match self {
                    $(Sender::$Recovery(half) => half.has_work_below(window)),*
                }
            }
            /// As [`SendHalf::is_done`].
            #[inline(always)]
            pub fn is_done(&self) -> bool {
                match self { $(Sender::$Recovery(half) => half.is_done()),* }
            }
            /// As [`SendHalf::peek`].
            pub fn peek(&self) -> u32 {
                match self { $(Sender::$Recovery(half) => half.peek()),* }
            }
            /// As [`SendHalf::send`].
            #[inline(always)]
            pub fn send(&mut self, now: Time) -> Sent {
                match self { $(Sender::$Recovery(half) => half.send(now)),* }
            }
            /// As [`SendHalf::on_ack`].
            #[inline(always)]
            pub fn on_ack(&mut self, now: Time, seq: u32, cumulative: u32) -> Acknowledged {
                self.on_ack_done(now, seq, cumulative).0
            }
            /// As [`SendHalf::on_ack`], and whether everything is acknowledged now.
            #[inline(always)]
            pub fn on_ack_done(
                &mut self,
                now: Time,
                seq: u32,
                cumulative: u32,
            ) -> (Acknowledged, bool) {
                match self {
                    $(Sender::$Recovery(half) => {
                        (half.on_ack(now, seq, cumulative), half.is_done())
                    })*
                }
            }
            /// As [`SendHalf::on_nack`].
            pub fn on_nack(
                &mut self,
                now: Time,
                seq: u32,
                cumulative: u32,
            ) -> Option<Acknowledged> {
                match self { $(Sender::$Recovery(half) => half.on_nack(now, seq, cumulative)),* }
            }
            /// As [`SendHalf::probing`].
            pub fn probing(&mut self) -> Option<&mut Probing> {
                match self { $(Sender::$Recovery(half) => half.probing()),* }
            }
            /// As [`SendHalf::has_left`].
            pub fn has_left(&self) -> bool {
                match self { $(Sender::$Recovery(half) => half.has_left()),* }
            }
            /// As [`SendHalf::on_quick_probe`].
            pub fn on_quick_probe(&mut self, window: Window) {
                match self { $(Sender::$Recovery(half) => half.on_quick_probe(window)),* }
            }
            /// As [`SendHalf::deadline`].
            pub fn deadline(&self, rto: Time) -> Option<Time> {
                match self { $(Sender::$Recovery(half) => half.deadline(rto)),* }
            }
            /// As [`SendHalf::on_timer`].
            pub fn on_timer(&mut self, now: Time, rto: Time) -> u32 {
                match self { $(Sender::$Recovery(half) => half.on_timer(now, rto)),* }
            }
            /// As [`SendHalf::longest_sleep`].
            pub fn longest_sleep(&self, rto: Time) -> Time {
                match self { $(Sender::$Recovery(half) => half.longest_sleep(rto)),* }
            }
        }

        /// The receiving half of one queue pair. See [`ReceiveHalf`] for the calls.
        #[derive(Clone, Debug)]
        pub enum Receiver {
            $(#[doc = concat!("Of [`", stringify!($Recovery), "`].")]
            $Recovery(<$Recovery as Recovery>::Receiver)),*
        }

        impl Receiver {
            /// As [`Recovery::receiver`].
            pub fn new(config: &RecoveryConfig, packets: u32) -> Receiver {
                match config {
                    $(RecoveryConfig::$Recovery(recovery) => {
                        Receiver::$Recovery(recovery.receiver(packets))
                    })*
                }
            }
            /// As [`ReceiveHalf::on_data`].
            #[inline(always)]
            pub fn on_data(&mut self, now: Time, seq: u32) -> Arrival {
                self.on_data_done(now, seq).0
            }
            /// As [`ReceiveHalf::on_data`], and whether everything is here now.
            #[inline(always)]
            pub fn on_data_done(&mut self, now: Time, seq: u32) -> (Arrival, bool) {
                match self {
                    $(Receiver::$Recovery(half) => (half.on_data(now, seq), half.is_done())),*
                }
            }
            /// As [`ReceiveHalf::on_packet`], and whether everything is here now.
            #[inline(always)]
            pub fn on_packet_done(
                &mut self,
                now: Time,
                seq: u32,
                carried: Carried,
            ) -> (Arrival, bool) {
                match self {
                    $(Receiver::$Recovery(half) => {
                        (half.on_packet(now, seq, carried), half.is_done())
                    })*
                }
            }
            /// As [`ReceiveHalf::report`].
            pub fn report(&mut self, seq: u32, exact: bool) -> Report {
                match self { $(Receiver::$Recovery(half) => half.report(seq, exact)),* }
            }
            /// As [`ReceiveHalf::on_request`].
            pub fn on_request(&mut self, following: u32) {
                match self { $(Receiver::$Recovery(half) => half.on_request(following)),* }
            }
            /// As [`ReceiveHalf::on_pull`].
            pub fn on_pull(&mut self) {
                match self { $(Receiver::$Recovery(half) => half.on_pull()),* }
            }
            /// As [`ReceiveHalf::on_trimmed`].
            pub fn on_trimmed(&mut self, now: Time, seq: u32) -> Arrival {
                match self { $(Receiver::$Recovery(half) => half.on_trimmed(now, seq)),* }
            }
            /// As [`ReceiveHalf::is_done`].
            #[inline(always)]
            pub fn is_done(&self) -> bool {
                match self { $(Receiver::$Recovery(half) => half.is_done()),* }
            }
            /// As [`ReceiveHalf::expected`].
            pub fn expected(&self) -> u32 {
                match self { $(Receiver::$Recovery(half) => half.expected()),* }
            }
        }
    };
}

pub(super) use recoveries;
