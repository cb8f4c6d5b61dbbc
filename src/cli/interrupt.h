// Signals that end the program: SIGINT (Ctrl-C), SIGTERM, SIGHUP. The exit code is 128 and the
// signal's number, and nothing is left behind.
#pragma once

#include <atomic>

namespace pruner {

/// Catches the signals: each ends the program at once. SIGHUP stays ignored if it is (nohup). A
/// write beyond the limit of file sizes becomes an error instead of a signal.
void catch_signals();

/// Makes the first signal set the flag that is returned, which asks the work to end in good order.
/// The second signal ends the program.
const std::atomic<bool>& catch_interrupts();
/// Makes every signal end the program again.
void release_interrupts();

/// Returns the exit code of a program that ends with `code`: the signal's if there was a signal.
int exit_code_after_signals(int code);

}  // namespace pruner
