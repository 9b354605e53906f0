// Writes a recording in the Trace Event Format, which Perfetto and chrome://tracing read.
#pragma once

#include <iosfwd>
#include <map>

#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

/// Information in a trace about the recorded program.
struct TracedProgram {
    std::string name;                                ///< "train.py"
    std::string command;                             ///< the command line
    std::map<std::uint64_t, std::string> threads{};  ///< names by the system's thread id

    /// Information about this process, from the operating system.
    static TracedProgram current();
};

/// Writes the trace as one JSON object: "otherData" describes the program; "traceEvents" has the names of rows and then
/// one event per line, ordered by time, in microseconds since the trace began. Throws nothing if the stream fails.
void write_trace_events(std::ostream& out, const RecordedTrace& trace, const TracedProgram& program);

}  // namespace bascule
