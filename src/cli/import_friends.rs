//! `centile import-friends`: imports friends of players from a file.

use std::{path::PathBuf, sync::Arc};

use clap::Args;

use crate::{
    Result,
    cli::{
        by::By,
        import::{FileFlags, import_file, source_name},
        with_instance,
    },
    config::Config,
    import::{self, ImportProgress},
};

/// The file to import.
#[derive(Debug, Args)]
pub(super) struct ImportFriends {
    /// CSV or NDJSON file; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    flags: FileFlags,
    #[command(flatten)]
    by: By,
}

/// Imports the file and prints a summary. Fails if lines were rejected.
pub(super) async fn run(config: &Config, friends: ImportFriends) -> Result<()> {
    let by = friends.by.actor()?;
    with_instance(config, async |instance| {
        let name = source_name(&friends.file);
        let run = async |source, rejects, progress: &Arc<ImportProgress>| {
            let (admin, score_writer) = (&instance.store.admin, &instance.store.score_writer);
            import::import_friends(admin, score_writer, &name, source, &by, rejects, progress).await
        };
        import_file(&friends.file, &friends.flags, run, "friends are imported. Run the import again to add the rest")
            .await
    })
    .await
}
