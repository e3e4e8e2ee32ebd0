//! What the registry of formats makes of its list: the options of all of them, and a way from the
//! catalogue's line about a format to its reader.

use super::TraceFormat;
use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, Options};

/// Takes `module::Options` for every format; `Options` implements [`TraceFormat`].
macro_rules! trace_formats {
    ($($module:ident::$Format:ident),* $(,)?) => {
        $(pub use $module::$Format;)*

        /// All formats of traces, in the order in which they are asked whose a file is.
        pub const TRACE_FORMATS: &[TraceFormatInfo] =
            &[$(<$module::$Format as TraceFormat>::INFO),*];

        /// What all formats are told. Which of them a file has shows when it is opened.
        #[derive(Clone, Debug, PartialEq)]
        pub struct TraceFormats {
            $($module: $module::$Format),*
        }

        impl TraceFormats {
            /// The options of all formats as an experiment file writes them, those that name second
            /// files left out, and all of them as they were understood.
            ///
            /// # Errors
            /// If no format has a key, or a value is not what its option takes.
            pub fn resolve(
                given: &[(&str, &str)],
            ) -> Result<(TraceFormats, ResolvedOptions), OptionError> {
                let mut resolved = ResolvedOptions::new();
                let formats =
                    TraceFormats { $($module: options_of(given, &mut resolved)?),* };
                let is_read = |key: &str| resolved.iter().any(|read| read.key == key);
                match given.iter().find(|(key, _)| !is_read(key)) {
                    Some((key, _)) => Err(OptionError::new(*key, "is no option of a trace; remove it")),
                    None => Ok((formats, resolved)),
                }
            }
            /// As [`TraceFormat::recognises`].
            pub fn recognises(info: &TraceFormatInfo, bytes: &[u8]) -> bool {
                $(if info.name == <$module::$Format as TraceFormat>::INFO.name {
                    return $module::$Format::recognises(bytes);
                })*
                false
            }
            /// As [`TraceFormat::check_side_file`].
            ///
            /// # Errors
            /// As there.
            pub fn check_side_file(
                info: &TraceFormatInfo,
                name: &str,
                text: &str,
            ) -> Result<(), WorkloadError> {
                $(if info.name == <$module::$Format as TraceFormat>::INFO.name {
                    return $module::$Format::check_side_file(name, text);
                })*
                Ok(())
            }
            /// As [`TraceFormat::load`].
            ///
            /// # Errors
            /// As there.
            ///
            /// # Panics
            /// If there is no such format.
            pub fn load(
                &self,
                info: &TraceFormatInfo,
                files: &mut dyn TraceSource,
            ) -> Result<Trace, WorkloadError> {
                $(if info.name == <$module::$Format as TraceFormat>::INFO.name {
                    return self.$module.load(files);
                })*
                panic!("{}: not in the registry", info.name)
            }
            /// As [`TraceFormat::on_data`], of all formats.
            pub fn on_data(&self, info: &TraceFormatInfo) -> Option<TraceFormats> {
                $(if info.name == <$module::$Format as TraceFormat>::INFO.name {
                    let $module = self.$module.on_data()?;
                    return Some(TraceFormats { $module, ..self.clone() });
                })*
                None
            }
        }
    };
}

pub(super) use trace_formats;

/// The options of one format among those given; what others share with it is noted once.
pub(super) fn options_of<F: TraceFormat>(
    given: &[(&str, &str)],
    resolved: &mut ResolvedOptions,
) -> Result<F, OptionError> {
    let is_own = |key: &str| F::INFO.options.iter().any(|option| option.key == key);
    let own: Vec<_> = given.iter().copied().filter(|(key, _)| is_own(key)).collect();
    let mut options = Options::new(F::INFO.name, F::INFO.options, &own)?;
    let format = F::read(&mut options)?;
    for one in options.resolve()? {
        if !resolved.iter().any(|read| read.key == one.key) {
            resolved.push(one);
        }
    }
    Ok(format)
}
