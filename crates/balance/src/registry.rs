//! What the registry of schemes makes of its list: one enum for what a scheme is told and one
//! for each place where schemes act, with a `match` behind every call.

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

        /// All schemes.
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
            pub fn settle(
                name: &str,
                given: &[(&str, &str)],
            ) -> Result<(SchemeConfig, Settled), OptionError> {
                $(if name == <$Scheme as Scheme>::INFO.name {
                    let owner = format!("scheme {name:?}");
                    let mut options =
                        Options::new(&owner, <$Scheme as Scheme>::INFO.options, given)?;
                    let scheme = <$Scheme as Scheme>::read(&mut options)?;
                    return Ok((scheme.into(), options.settle()?));
                })*
                let known: Vec<_> = SCHEMES.iter().map(|info| info.name).collect();
                Err(OptionError::unknown("scheme", name, &known))
            }
        }

        /// What one host plans with. Posts go in, pieces come out, some at once and some when
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
            pub fn post(&mut self, now: Time, post: Post, fabric: &Fabric, out: &mut Vec<Piece>) {
                match self { $(Planner::$Scheme(plan) => plan.post(now, post, fabric, out)),* }
            }
            /// As [`Plan::deadline`].
            pub fn deadline(&self) -> Option<Time> {
                match self { $(Planner::$Scheme(plan) => plan.deadline()),* }
            }
            /// As [`Plan::flush`].
            pub fn flush(&mut self, now: Time, fabric: &Fabric, out: &mut Vec<Piece>) {
                match self { $(Planner::$Scheme(plan) => plan.flush(now, fabric, out)),* }
            }
            /// As [`Plan::trouble`].
            pub fn trouble(
                &mut self,
                now: Time,
                dst: HostId,
                route: Route,
                trouble: Trouble,
                fabric: &Fabric,
            ) -> Option<Route> {
                match self {
                    $(Planner::$Scheme(plan) => plan.trouble(now, dst, route, trouble, fabric)),*
                }
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
        const _: () = assert!(size_of::<Steering>() <= 32);

        impl Steering {
            pub(crate) fn of(scheme: &SchemeConfig, context: &FlowContext) -> Steering {
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
            /// As [`Steer::route`].
            #[inline]
            pub fn route(&mut self, base: Route) -> Route {
                match self {
                    Steering::Fixed => base,
                    $(Steering::$Scheme(state) => state.route(base)),*
                }
            }
            /// As [`Steer::on_ack`].
            #[inline]
            pub fn on_ack(&mut self, entropy: u16, marked: bool) {
                match self {
                    Steering::Fixed => {}
                    $(Steering::$Scheme(state) => state.on_ack(entropy, marked)),*
                }
            }
            /// As [`Steer::on_time_out`].
            pub fn on_time_out(&mut self) {
                match self {
                    Steering::Fixed => {}
                    $(Steering::$Scheme(state) => state.on_time_out()),*
                }
            }
        }
    };
}

pub(crate) use schemes;
