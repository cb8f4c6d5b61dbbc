// Signals that end the program: SIGINT (Ctrl-C), SIGTERM, SIGHUP. The exit code is 128 and the
// signal's number, and nothing is left behind.
#pragma once

#include <atomic>

namespace pruner {

/// Catches the signals from now on: each ends the program at once. SIGHUP stays ignored where it is
/// (nohup). What is written beyond a limit of file sizes is an error, no signal.
void catch_signals();

/// From now on the first signal asks the work to end in good order, by this flag; the second ends
/// the program.
const std::atomic<bool>& catch_interrupts();
/// From now on every signal ends the program, as before.
void release_interrupts();

/// The exit code of a program that ends with `code`: that of the signal, if there was one.
int exit_code_after_signals(int code);

}  // namespace pruner
