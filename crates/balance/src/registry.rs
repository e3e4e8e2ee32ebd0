//! What the registry of schemes makes of its list: one enum for what a scheme is told and one
//! for each place where schemes act, with a `match` behind every call; and how names are read.

use crate::scheme::{Scheme, SchemeInfo};
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, Options};

/// Takes `module::Scheme` for every scheme; each implements [`crate::scheme::Scheme`]. A type
/// that is a planner or a flow's state of several schemes becomes a variant for each of them.
macro_rules! schemes {
    ($($module:ident::$Scheme:ident),* $(,)?) => {
        $(pub use $module::$Scheme;)*

        /// Any of the schemes, with what it is told.
        #[derive(Clone, Debug, PartialEq)]
        pub enum SchemeConfig {
            $(#[doc = concat!("See [`", stringify!($Scheme), "`].")] $Scheme($Scheme)),*
        }

        $(impl From<$Scheme> for SchemeConfig {
            fn from(scheme: $Scheme) -> SchemeConfig {
                SchemeConfig::$Scheme(scheme)
            }
        })*

        /// All schemes, in the order of the registry.
        pub const SCHEMES: &[SchemeInfo] = &[$(<$Scheme as Scheme>::INFO),*];

        impl SchemeConfig {
            /// The catalogue's line about it.
            pub fn info(&self) -> &'static SchemeInfo {
                match self {
                    $(SchemeConfig::$Scheme(_) => const { &<$Scheme as Scheme>::INFO }),*
                }
            }

            /// As [`SchemeConfig::read`], with all options as they were understood.
            ///
            /// # Errors
            /// As [`SchemeConfig::read`].
            pub fn resolve(
                name: &str,
                given: &[(&str, &str)],
            ) -> Result<(SchemeConfig, ResolvedOptions), OptionError> {
                let spelling = Spelling::read(name, SCHEMES)?;
                $(if spelling.info.name == <$Scheme as Scheme>::INFO.name {
                    let (scheme, options) = spelling.resolve::<$Scheme>(given)?;
                    return Ok((scheme.into(), options));
                })*
                unreachable!("{:?} is in the registry", spelling.info)
            }
            /// As [`Scheme::is_multipath`].
            pub fn is_multipath(&self) -> bool {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.is_multipath()),* }
            }
            /// As [`Scheme::follows_delay`].
            pub fn follows_delay(&self) -> bool {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.follows_delay()),* }
            }
            /// As [`Scheme::needs_path_ids`].
            pub fn needs_path_ids(&self) -> bool {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.needs_path_ids()),* }
            }
            /// As [`Scheme::fits`].
            ///
            /// # Errors
            /// As [`Scheme::fits`].
            pub fn fits(&self, fabric: &Fabric) -> Result<(), FabricError> {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.fits(fabric)),* }
            }
            /// As [`Scheme::switches`].
            pub fn switches(&self) -> &'static str {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.switches()),* }
            }
            /// As [`Scheme::enforce`].
            pub fn enforce(&self) -> Option<Enforce> {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.enforce()),* }
            }
            /// As [`Scheme::weighs_again`].
            pub fn weighs_again(&self) -> bool {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.weighs_again()),* }
            }
            /// As [`Scheme::prefers_detour`].
            pub fn prefers_detour(&self, shortest: PathStart, detour: PathStart) -> bool {
                match self {
                    $(SchemeConfig::$Scheme(scheme) => scheme.prefers_detour(shortest, detour)),*
                }
            }
            /// As [`Scheme::tor`].
            pub fn tor<T>(&self, context: &TorContext<'_>) -> Option<Tor<T>> {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.tor(context)),* }
            }
            /// As [`Scheme::view`].
            pub fn view(&self, fabric: &Fabric, links: LinkShares) -> PathView {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.view(fabric, links)),* }
            }
            /// As [`Scheme::number`].
            pub(crate) fn number(&self) -> Option<u32> {
                match self { $(SchemeConfig::$Scheme(scheme) => scheme.number()),* }
            }
        }

        /// What one host plans with. Posts go in, subflows come out, some at once and some when
        /// [`Planner::deadline`] has come. See [`Plan`] for the calls.
        #[derive(Clone, Debug)]
        pub enum Planner {
            $(#[doc = concat!("Of [`", stringify!($Scheme), "`].")]
            $Scheme(<$Scheme as Scheme>::Planner)),*
        }

        impl Planner {
            pub(crate) fn of(scheme: &SchemeConfig, context: &HostContext) -> Planner {
                match scheme {
                    $(SchemeConfig::$Scheme(scheme) => Planner::$Scheme(scheme.planner(context))),*
                }
            }
            /// As [`Plan::post`].
            pub fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Subflow>) {
                match self { $(Planner::$Scheme(plan) => plan.post(now, post, fabric, out)),* }
            }
            /// As [`Plan::deadline`].
            pub fn deadline(&self) -> Option<Time> {
                match self { $(Planner::$Scheme(plan) => plan.deadline()),* }
            }
            /// As [`Plan::flush`].
            pub fn flush(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Subflow>) {
                match self { $(Planner::$Scheme(plan) => plan.flush(now, fabric, out)),* }
            }
            /// As [`Plan::next`].
            pub fn next(
                &mut self,
                now: Time,
                queue_pair: QueuePairId,
                fabric: &Fabric,
            ) -> Option<Subflow> {
                match self { $(Planner::$Scheme(plan) => plan.next(now, queue_pair, fabric)),* }
            }
            /// As [`Plan::port`].
            pub fn port(&self, chunk: u32) -> Option<u8> {
                match self { $(Planner::$Scheme(plan) => plan.port(chunk)),* }
            }
            /// As [`Plan::patience`].
            pub fn patience(&mut self, now: Time, flow: &FlowInfo, fabric: &Fabric) -> Option<Time> {
                match self { $(Planner::$Scheme(plan) => plan.patience(now, flow, fabric)),* }
            }
            /// As [`Plan::on_loss`].
            pub fn on_loss(
                &mut self,
                now: Time,
                flow: &FlowInfo,
                signal: LossSignal,
                fabric: &Fabric,
            ) -> Option<Route> {
                match self {
                    $(Planner::$Scheme(plan) => plan.on_loss(now, flow, signal, fabric)),*
                }
            }
            /// As [`Plan::works`].
            pub fn works(&mut self, now: Time, dst: HostId, path: PathId, fabric: &Fabric) {
                match self { $(Planner::$Scheme(plan) => plan.works(now, dst, path, fabric)),* }
            }
            /// As [`Plan::learn`].
            pub fn learn(&mut self, now: Time, view: &Arc<PathView>, fabric: &Fabric) {
                match self { $(Planner::$Scheme(plan) => plan.learn(now, view, fabric)),* }
            }
            /// As [`Plan::wants_rebalance`].
            pub fn wants_rebalance(&self) -> bool {
                match self { $(Planner::$Scheme(plan) => plan.wants_rebalance()),* }
            }
            /// As [`Plan::rebalance`].
            pub fn rebalance(
                &mut self,
                now: Time,
                flows: &[ActiveFlow],
                fabric: &Fabric,
                out: &mut Vec<(usize, Route)>,
            ) {
                match self {
                    $(Planner::$Scheme(plan) => plan.rebalance(now, flows, fabric, out)),*
                }
            }
            /// As [`Plan::hear`].
            pub fn hear(&mut self, flow: &FlowInfo, answer: ChunkAnswer) {
                match self { $(Planner::$Scheme(plan) => plan.hear(flow, answer)),* }
            }
            /// As [`Plan::sent`].
            pub fn sent(
                &mut self,
                now: Time,
                flow: &FlowInfo,
                fabric: &Fabric,
                out: &mut Vec<Subflow>,
            ) {
                match self { $(Planner::$Scheme(plan) => plan.sent(now, flow, fabric, out)),* }
            }
        }

        /// The per-packet state of one flow. See [`Steer`] for the calls.
        #[derive(Clone, Debug)]
        pub enum Steering {
            /// Every packet takes the flow's route, whatever the scheme: one variant for all,
            /// so that [`Steering::is_fixed`] is one comparison.
            Fixed,
            $(#[doc = concat!("Of [`", stringify!($Scheme), "`], unless that is fixed.")]
            $Scheme(<$Scheme as Scheme>::Steering)),*
        }

        $(const _: () = assert!(
            size_of::<<$Scheme as Scheme>::Steering>() <= MAX_STATE,
            concat!("put the per-flow state of ", stringify!($Scheme), " into a Box")
        );)*
        const _: () = assert!(size_of::<Steering>() <= 24);

        impl Steering {
            pub(crate) fn of(scheme: &SchemeConfig, context: &FlowContext<'_>) -> Steering {
                match scheme {
                    $(SchemeConfig::$Scheme(scheme) => {
                        if <<$Scheme as Scheme>::Steering as Steer>::FIXED {
                            Steering::Fixed
                        } else {
                            Steering::$Scheme(scheme.steering(context))
                        }
                    })*
                }
            }
            /// Whether all packets take the flow's route, so that the other calls can be left
            /// out.
            #[inline(always)]
            pub fn is_fixed(&self) -> bool {
                matches!(self, Steering::Fixed)
            }
            /// Whether it wants round-trip times: [`Steer::TIMED`].
            #[inline]
            pub fn is_timed(&self) -> bool {
                match self {
                    Steering::Fixed => false,
                    $(Steering::$Scheme(_) => {
                        <<$Scheme as Scheme>::Steering as Steer>::TIMED
                    }),*
                }
            }
            /// Whether acknowledgements tell it something: [`Steer::HEARS`].
            pub fn hears(&self) -> bool {
                match self {
                    Steering::Fixed => false,
                    $(Steering::$Scheme(_) => {
                        <<$Scheme as Scheme>::Steering as Steer>::HEARS
                    }),*
                }
            }
            /// As [`Steer::NAMES_LOSSES`].
            pub fn names_losses(&self) -> bool {
                match self {
                    Steering::Fixed => false,
                    $(Steering::$Scheme(_) => {
                        <<$Scheme as Scheme>::Steering as Steer>::NAMES_LOSSES
                    }),*
                }
            }
            /// As [`Steer::on_lost`].
            pub fn on_lost(&mut self, now: Time, entropy: u16) {
                match self {
                    Steering::Fixed => {}
                    $(Steering::$Scheme(state) => state.on_lost(now, entropy)),*
                }
            }
            /// As [`Steer::entropies`].
            pub fn entropies(&self) -> Option<std::ops::RangeInclusive<u16>> {
                match self {
                    Steering::Fixed => None,
                    $(Steering::$Scheme(state) => Steer::entropies(state)),*
                }
            }
            /// As [`Steer::route`].
            #[inline]
            pub fn route(&mut self, base: Route, at: Departure) -> Route {
                match self {
                    Steering::Fixed => base,
                    $(Steering::$Scheme(state) => state.route(base, at)),*
                }
            }
            /// As [`Steer::on_ack`].
            #[inline]
            pub fn on_ack(&mut self, feedback: Feedback) {
                match self {
                    Steering::Fixed => {}
                    $(Steering::$Scheme(state) => state.on_ack(feedback)),*
                }
            }
            /// As [`Steer::probe_at`].
            pub fn probe_at(&mut self) -> Option<Time> {
                match self {
                    Steering::Fixed => None,
                    $(Steering::$Scheme(state) => state.probe_at()),*
                }
            }
            /// As [`Steer::probe`].
            pub fn probe(&mut self, now: Time, out: &mut Vec<Route>) -> Option<Time> {
                match self {
                    Steering::Fixed => None,
                    $(Steering::$Scheme(state) => state.probe(now, out)),*
                }
            }
            /// As [`Steer::on_probe`].
            pub fn on_probe(&mut self, entropy: u16) {
                match self {
                    Steering::Fixed => {}
                    $(Steering::$Scheme(state) => state.on_probe(entropy)),*
                }
            }
            /// As [`Steer::on_time_out`].
            pub fn on_time_out(&mut self, time_out: TimeOut) {
                match self {
                    Steering::Fixed => {}
                    $(Steering::$Scheme(state) => state.on_time_out(time_out)),*
                }
            }
        }

        /// What acts in one switch. See [`Forward`] for the calls.
        #[derive(Clone, Debug)]
        pub enum Switching {
            /// Every packet goes where the hash says, whatever the scheme: one variant for all,
            /// so that [`Switching::is_hashed`] is one comparison.
            Hashed,
            $(#[doc = concat!("Of [`", stringify!($Scheme), "`], unless that is hashed.")]
            $Scheme(<$Scheme as Scheme>::Switching)),*
        }

        $(const _: () = assert!(
            !<$Scheme as Scheme>::INFO.in_switch
                || !<<$Scheme as Scheme>::Switching as Forward>::HASHED
                || !<$Scheme as Scheme>::INFO.tor.is_none()
                || <$Scheme as Scheme>::INFO.weighs_detours,
            concat!(stringify!($Scheme), "::INFO.in_switch says otherwise than its Switching")
        );)*

        impl Switching {
            pub(crate) fn of(scheme: &SchemeConfig, context: &SwitchContext) -> Switching {
                match scheme {
                    $(SchemeConfig::$Scheme(scheme) => {
                        let state = scheme.switching(context);
                        if state.is_hashed() {
                            Switching::Hashed
                        } else {
                            Switching::$Scheme(state)
                        }
                    })*
                }
            }
            /// Whether every packet goes where the hash says, so that [`Switching::choose`] can
            /// be left out.
            #[inline(always)]
            pub fn is_hashed(&self) -> bool {
                matches!(self, Switching::Hashed)
            }
            /// As [`Forward::choose`].
            #[inline]
            pub fn choose<H: Hops>(&mut self, packet: &Passing, hops: &H) -> u32 {
                let hop = match self {
                    Switching::Hashed => packet.hashed,
                    $(Switching::$Scheme(state) => state.choose(packet, hops)),*
                };
                debug_assert!(hop < hops.count(), "hop {hop} of {}", hops.count());
                hop
            }
        }
    };
}

pub(crate) use schemes;

/// A scheme's name as somebody wrote it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spelling<'a> {
    /// All of it.
    name: &'a str,
    pub(crate) info: &'static SchemeInfo,
    /// The number at its end, if it has one: digits.
    number: Option<&'a str>,
}

impl<'a> Spelling<'a> {
    /// Finds the scheme among all that there are.
    pub(crate) fn read(
        name: &'a str,
        schemes: &'static [SchemeInfo],
    ) -> Result<Spelling<'a>, OptionError> {
        let number = |info: &SchemeInfo| {
            let number = name.strip_prefix(info.name)?.strip_prefix('-')?;
            // One spelling for one number: no leading zeros.
            let plain = number.bytes().all(|byte| byte.is_ascii_digit())
                && (number == "0" || !number.starts_with('0'));
            (info.numbered.is_some() && !number.is_empty() && plain).then_some(number)
        };
        let found = schemes.iter().find_map(|info| match number(info) {
            None if info.name == name => Some(Spelling { name, info, number: None }),
            None => None,
            number => Some(Spelling { name, info, number }),
        });
        found.ok_or_else(|| {
            let known: Vec<_> = schemes.iter().map(SchemeInfo::spelling).collect();
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            OptionError::unknown("scheme", name, &known)
        })
    }

    /// Reads the options of `S`, whose name this is: those given and that in the name.
    pub(crate) fn resolve<S: Scheme>(
        self,
        given: &[(&str, &str)],
    ) -> Result<(S, ResolvedOptions), OptionError> {
        let in_name = S::INFO.numbered.zip(self.number);
        let mut all = given.to_vec();
        let again = in_name.is_some_and(|(key, _)| given.iter().any(|(other, _)| *other == key));
        all.extend(in_name.filter(|_| !again));
        let owner = format!("scheme {:?}", self.name);
        let mut options = Options::new(&owner, S::INFO.options, &all)?;
        let scheme = S::read(&mut options).map_err(|error| match in_name {
            Some((key, _)) if error.key == key && !again => {
                OptionError::new("scheme", format!("{:?}: {}", self.name, error.what))
            }
            _ => error,
        })?;
        match in_name {
            Some((key, _)) if S::INFO.named(scheme.number()) != self.name => {
                let what = format!("contradicts the name {:?}; remove one of them", self.name);
                Err(OptionError::new(key, what))
            }
            _ => Ok((scheme, options.resolve()?)),
        }
    }
}
