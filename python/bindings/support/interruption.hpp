// Ctrl-C and other signals while the main thread waits for a device, and while NVRTC compiles.
#pragma once

#include <string>

namespace bascule::python {

/// From now on Python's signal handlers run while the main thread waits for the device, and an exception that one of
/// them raises (KeyboardInterrupt) ends the wait; on the emulated device it also ends what is waited for. The driver is
/// loaded; the GIL is held.
void run_signal_handlers_while_waiting();

/// The same for compiles, whose threads go on; `bascule._progress` shows what takes long. The GIL is held.
void run_signal_handlers_while_compiling();

/// Sets the exception that a signal handler raised during the call that ends now, with `note` added to it. False
/// when there is none. The GIL is held. If this is not called, the interpreter raises the exception soon.
bool raise_interruption(const std::string& note);

/// The interpreter is about to end, and only daemon threads are left beside the main one.
void end_of_program() noexcept;

/// In a daemon thread after `end_of_program`: does not return. What it waited for is dropped then, and its error is
/// not read. The GIL is held.
void stop_daemon_thread_at_end() noexcept;

}  // namespace bascule::python
