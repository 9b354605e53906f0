// What was recorded, as the Trace Event Format, which Perfetto and chrome://tracing read.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

#include <bascule/runtime/trace/recorder.hpp>

namespace bascule {

/// What a trace says of the program that it was recorded in.
struct TracedProgram {
    std::string name;                                ///< "train.py"
    std::string command;                             ///< with its arguments
    std::map<std::uint64_t, std::string> threads{};  ///< names, by the system's numbers

    /// This process, as the system knows it.
    static TracedProgram current();
};

/// Writes the trace as one JSON object: "otherData" says what was traced, "traceEvents" has the names of rows and then
/// an event per line, by time, in microseconds since the trace began. Nothing is thrown for a stream that fails.
void write_trace_events(std::ostream& out, const RecordedTrace& trace, const TracedProgram& program);

}  // namespace bascule
