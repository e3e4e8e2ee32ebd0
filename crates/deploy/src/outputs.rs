//! Whether what a process is to write and serve can be: asked before a job begins, in one place.

use crate::variables::profile_directory;
use crate::{DeployError, Deployment, Prometheus};
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes `directory`, unless it is there, and tries whether files can be written into it.
///
/// # Errors
/// What the system says.
pub fn try_directory(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    try_writing(directory)
}

fn try_writing(directory: &Path) -> io::Result<()> {
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let probe = directory.join(format!(".weft-{}-{now}", std::process::id()));
        // A new file, never what a link leads to: others may write into the directory, too.
        match File::create_new(&probe) {
            // Another host or container has a process of this number, which has come at the same time.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.and_then(|_| std::fs::remove_file(&probe)),
        }
    }
}

impl Deployment {
    /// Whether statistics, what Prometheus reads and the profile of this process can be where they are to be.
    ///
    /// # Errors
    /// The variable that asks for what cannot be: one line.
    pub fn check_outputs(&self) -> Result<(), DeployError> {
        if let Some(file) = &self.stats {
            let folder = file.parent().filter(|folder| *folder != Path::new(""));
            let tried = match file.is_dir() {
                true => Err(io::ErrorKind::IsADirectory.into()),
                false => try_writing(folder.unwrap_or(Path::new("."))),
            };
            said(
                "WEFT_STATS",
                file.display(),
                tried,
                "name a file in a folder that can be written",
            )?;
        }
        match &self.prometheus {
            Some(Prometheus::Directory(directory)) => {
                let mend = "name a directory that can be written";
                said("WEFT_PROMETHEUS", directory.display(), try_writing(directory), mend)?;
            }
            Some(Prometheus::Served(address)) => {
                let tried = TcpListener::bind((address.ip(), 0)).map(drop);
                said("WEFT_PROMETHEUS", address, tried, "use an address of this machine")?;
            }
            None => {}
        }
        let Some(directory) = profile_directory() else { return Ok(()) };
        let mend = "name a directory that can be written";
        said("WEFT_PROFILE", directory.display(), try_directory(&directory), mend)
    }
}

fn said(
    name: &str,
    value: impl std::fmt::Display,
    tried: io::Result<()>,
    mend: &str,
) -> Result<(), DeployError> {
    tried.map_err(|error| DeployError(format!("{name}: {value}: {error}; {mend}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others may write into the directory.
    #[test]
    fn what_a_link_leads_to_stays_as_it_was() {
        let directory = std::env::temp_dir().join(format!("weft-linked-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("it is made");
        let precious = directory.join("precious");
        std::fs::write(&precious, "as it was").expect("it is written");
        let link = directory.join(format!(".weft-{}", std::process::id()));
        std::os::unix::fs::symlink(&precious, &link).expect("it is made");
        try_directory(&directory).expect("it can be written");
        assert_eq!(std::fs::read_to_string(&precious).expect("it is there"), "as it was");
        assert!(link.is_symlink());
        std::fs::remove_dir_all(&directory).expect("it goes");
    }

    /// As of processes of one number in several containers.
    #[test]
    fn a_directory_is_tried_by_many_at_a_time() {
        let directory = std::env::temp_dir().join(format!("weft-tried-{}", std::process::id()));
        let tries = || (0..500).try_for_each(|_| try_directory(&directory));
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(tries)).collect();
            all.into_iter()
                .for_each(|one| one.join().expect("it ends").expect("it can be written"));
        });
        std::fs::remove_dir_all(&directory).expect("it goes");
    }
}
