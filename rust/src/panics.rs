//! Panics of decoders of other crates, which are errors of the file that they decode.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Return the result of `work`, or the message of its panic, which is not printed.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CATCHING.get() {
                print(panic);
            }
        }));
    });
    let was_catching = IS_CATCHING.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_CATCHING.set(was_catching);
    outcome.map_err(|payload| message(payload.as_ref()))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("panic").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_panic_is_returned() {
        let number = 7;
        assert_eq!(catch(|| number), Ok(7));
        assert_eq!(catch(|| -> u8 { panic!("seven") }), Err("seven".to_owned()));
        assert_eq!(catch(|| -> u8 { panic!("{number}") }), Err("7".to_owned()));
    }
}
