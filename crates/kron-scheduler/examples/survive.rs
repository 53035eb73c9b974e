//! Kill it with `kill -9` while it works, start it again, and it goes on: the task that was cut off starts at once.
//!
//! ```sh
//! cargo run -p kron-scheduler --example survive -- /tmp/survive.kron
//! ```

use kron_scheduler::{Registration, Scheduler, store::FileStore};
use std::{io, time::Duration};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("survive.kron".into());
    let scheduler = Scheduler::new(FileStore::new(path));
    let work = || async {
        println!("working for 20 seconds: kill me, and start me again");
        tokio::time::sleep(Duration::from_secs(20)).await;
        println!("done");
        Ok::<(), io::Error>(())
    };
    scheduler.initialize([Registration::new("work", "* * * * *", Duration::from_secs(5), work)]).await?;
    tokio::signal::ctrl_c().await?;
    println!("waiting for what runs");
    scheduler.stop().await?;
    Ok(())
}
