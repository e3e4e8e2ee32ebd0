//! What the registry of congestion controls makes of its list: one enum for what a control is told, one
//! for the state of a queue pair, with a `match` behind every call.

/// Takes `module::State(Config)` for every control; `Config` implements
/// [`super::CongestionControl`].
macro_rules! congestion_controls {
    ($($module:ident::$State:ident($Config:ident)),* $(,)?) => {
        $(pub use $module::{$Config, $State};)*

        /// Any of the controls, with what it is told.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum CongestionConfig {
            $(#[doc = concat!("See [`", stringify!($Config), "`].")] $State($Config)),*
        }

        $(impl From<$Config> for CongestionConfig {
            fn from(config: $Config) -> CongestionConfig {
                CongestionConfig::$State(config)
            }
        })*

        /// All congestion controls.
        pub const CONGESTION_CONTROLS: &[CongestionInfo] =
            &[$(<$Config as CongestionControl>::INFO),*];

        impl CongestionConfig {
            /// The catalogue's line about it.
            pub fn info(&self) -> &'static CongestionInfo {
                match self {
                    $(CongestionConfig::$State(_) => {
                        const { &<$Config as CongestionControl>::INFO }
                    })*
                }
            }
            /// As [`CongestionConfig::read`], with all options as they were understood.
            ///
            /// # Errors
            /// As [`CongestionConfig::read`].
            pub fn resolve(
                name: &str,
                given: &[(&str, &str)],
                path: &PathScale,
            ) -> Result<(CongestionConfig, ResolvedOptions), OptionError> {
                $(if name == <$Config as CongestionControl>::INFO.name {
                    let owner = format!("congestion {name:?}");
                    let mut options =
                        Options::new(&owner, <$Config as CongestionControl>::INFO.options, given)?;
                    let config = <$Config as CongestionControl>::read(&mut options, path)?;
                    return Ok((config.into(), options.resolve()?));
                })*
                let known: Vec<_> = CONGESTION_CONTROLS.iter().map(|info| info.name).collect();
                Err(OptionError::unknown("congestion", name, &known))
            }
            /// The control called `name` with options as an experiment file writes them:
            /// `[("dctcp_gain", "0.125")]`.
            ///
            /// # Errors
            /// If the name (key `congestion`) or an option is unknown, or a value is not what the
            /// option takes.
            pub fn read(
                name: &str,
                given: &[(&str, &str)],
                path: &PathScale,
            ) -> Result<CongestionConfig, OptionError> {
                CongestionConfig::resolve(name, given, path).map(|(config, _)| config)
            }
            /// All controls with their default options, in the order of [`CONGESTION_CONTROLS`].
            ///
            /// # Panics
            /// If a control refuses its own defaults.
            pub fn all(path: &PathScale) -> Vec<CongestionConfig> {
                let usual = |info: &CongestionInfo| match CongestionConfig::read(info.name, &[], path) {
                    Ok(config) => config,
                    Err(error) => panic!("{}: {error}", info.name),
                };
                CONGESTION_CONTROLS.iter().map(usual).collect()
            }
            /// As [`CongestionControl::credit`].
            pub fn credit(&self) -> Option<RcccConfig> {
                match self { $(CongestionConfig::$State(config) => config.credit()),* }
            }
            /// Whether receivers grant credit.
            pub fn grants_credit(&self) -> bool {
                self.credit().is_some()
            }
            /// As [`CongestionControl::initial_window`].
            pub fn initial_window(&self) -> Option<u64> {
                match self { $(CongestionConfig::$State(config) => config.initial_window()),* }
            }
        }

        /// The congestion state of one queue pair. See [`CongestionState`] for the calls.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Congestion {
            $(#[doc = concat!("Of [`", stringify!($Config), "`].")] $State($State)),*
        }

        impl Congestion {
            /// The state of a new queue pair.
            pub fn new(config: &CongestionConfig, flow: &FlowPace) -> Congestion {
                match config {
                    $(CongestionConfig::$State(config) => Congestion::$State(config.state(flow))),*
                }
            }
            /// As [`CongestionState::window`].
            #[inline(always)]
            pub fn window(&self) -> u32 {
                match self { $(Congestion::$State(state) => state.window()),* }
            }
            /// As [`CongestionState::largest_window`].
            pub fn largest_window(&self) -> u32 {
                match self { $(Congestion::$State(state) => state.largest_window()),* }
            }
            /// As [`CongestionState::delays`].
            pub fn delays(&self) -> Option<Delays> {
                match self { $(Congestion::$State(state) => state.delays()),* }
            }
            /// As [`CongestionState::pull_target`].
            pub fn pull_target(&self, backlog: u32, sharing: u32) -> Option<u32> {
                match self { $(Congestion::$State(state) => state.pull_target(backlog, sharing)),* }
            }
            /// As [`CongestionState::on_credit`].
            pub fn on_credit(&mut self, granted: u32) {
                match self { $(Congestion::$State(state) => state.on_credit(granted)),* }
            }
            /// As [`CongestionState::is_paced`].
            #[inline(always)]
            pub fn is_paced(&self) -> bool {
                match self { $(Congestion::$State(state) => state.is_paced()),* }
            }
            /// As [`CongestionState::pacing`].
            #[inline(always)]
            pub fn pacing(&self, wire_bytes: u32) -> Option<Time> {
                match self { $(Congestion::$State(state) => state.pacing(wire_bytes)),* }
            }
            /// As [`CongestionState::on_send`].
            #[inline(always)]
            pub fn on_send(&mut self, now: Time, wire_bytes: u32) {
                match self { $(Congestion::$State(state) => state.on_send(now, wire_bytes)),* }
            }
            /// As [`CongestionState::PACES_ABSOLUTELY`].
            #[inline(always)]
            pub fn paces_absolutely(&self) -> bool {
                match self {
                    $(Congestion::$State(_) => <$State as CongestionState>::PACES_ABSOLUTELY),*
                }
            }
            /// As [`CongestionState::WANTS_RTT`].
            #[inline(always)]
            pub fn wants_rtt(&self) -> bool {
                match self { $(Congestion::$State(_) => <$State as CongestionState>::WANTS_RTT),* }
            }
            /// As [`CongestionState::is_late`].
            #[inline(always)]
            pub fn is_late(&self, rtt: Time) -> bool {
                match self { $(Congestion::$State(state) => state.is_late(rtt)),* }
            }
            /// As [`CongestionState::on_ack`].
            #[inline(always)]
            pub fn on_ack(&mut self, ack: &AckInfo) {
                match self { $(Congestion::$State(state) => state.on_ack(ack)),* }
            }
            /// As [`CongestionState::on_loss`].
            pub fn on_loss(&mut self, now: Time, loss: Loss) {
                match self { $(Congestion::$State(state) => state.on_loss(now, loss)),* }
            }
        }
    };
}

pub(super) use congestion_controls;
