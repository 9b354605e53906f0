#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <tuple>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/trace/trace_events.hpp>

namespace bascule {
namespace {

using Json = nlohmann::ordered_json;

constexpr int host = 1;  // the process id of the host's rows
/// The process id of a device's rows. Its streams are the threads.
int process_of(int device) { return host + 1 + device; }

/// The row of a stream: device, handle, and the thread if the handle is the per-thread default stream.
using StreamRow = std::tuple<int, std::uint64_t, std::uint64_t>;

StreamRow row_of(const TraceRecord& record) {
    const std::uint64_t handle = record.stream->handle();
    return {record.stream->device().ordinal(), handle, handle == 2 ? record.thread : 0};
}

std::string thread_name(const TracedProgram& program, std::uint64_t thread) {
    const auto found = program.threads.find(thread);
    return found != program.threads.end() ? found->second : fmt::format("thread {}", thread);
}

Json to_array(const Dim3& size) { return Json::array({size.x, size.y, size.z}); }

Json arguments_of(const TraceRecord& record) {
    Json args = Json::object();
    if (!record.subject.empty()) args["signature"] = record.subject;
    if (record.config) {
        args["grid"] = to_array(record.config->grid);
        args["block"] = to_array(record.config->block);
        args["shared_bytes"] = record.config->shared_bytes.value;
    }
    if (record.bytes) args["bytes"] = *record.bytes;
    if (record.site != LaunchSite{}) args["place"] = record.site.place();
    if (record.captured) args["captured"] = true;
    if (record.stream) args["stream"] = fmt::format("{:#x}", record.stream->handle());
    if (record.origin) {
        args["cache"] = *record.origin == Origin::compiled ? "miss" : "hit";
        args["from"] = to_string(*record.origin);
    }
    return args;
}

std::string device_name(const TraceRecord& record) {
    if (record.kind == CallKind::graph_launch) return "graph";
    if (record.kind != CallKind::launch) return to_string(record.kind);
    return record.subject.starts_with("void ") ? record.subject.substr(5) : record.subject;
}

/// A span or one end of an arrow. The file is sorted by these and written from them.
struct TraceEvent {
    enum class Kind : std::uint8_t { call, operation, issued, begun, awaited, waited };
    Kind kind;
    const TraceRecord* record;  // the record whose row it is in
    TraceSpan span;             // for an arrow's end, both times are equal
    std::uint64_t other = 0;    // the operation at the other end of a wait

    bool is_span() const { return kind == Kind::call || kind == Kind::operation; }
    /// Sorts by time. Outer spans come before inner ones, and arrows after the spans that they are bound to.
    auto order() const { return std::tuple(span.begin, !is_span(), span.begin - span.end); }
};

class Events {
  public:
    Events(const RecordedTrace& trace, const TracedProgram& program) : trace_(trace), program_(program) {
        for (const TraceRecord& record : trace.records) {
            threads_.try_emplace(record.thread, threads_.size());
            if (record.operation == 0) continue;
            operations_.emplace(record.operation, Operation{&record, {}, false});
            rows_.try_emplace(row_of(record), rows_.size() + 1);
            devices_.insert(record.stream->device().ordinal());
        }
        find_spans();
    }

    Json metadata() const {
        Json said{{"recorded by", "Bascule " BASCULE_VERSION}, {"command", program_.command}};
        for (const int number : devices_) {
            const Device device(number);
            said[fmt::format("device {}", number)] = device.name();
            if (device.emulated()) {
                said["emulated"] =
                    "The device is emulated: its times are those of a CPU and mean nothing for a GPU.";
            }
        }
        const auto untimed = std::count_if(operations_.begin(), operations_.end(),
                                           [](const auto& each) { return !each.second.record->ran; });
        if (untimed != 0) said["operations without times"] = untimed;
        if (trace_.dropped != 0) {
            said["dropped"] = fmt::format("{} calls beyond the limit are missing.", trace_.dropped);
        }
        return said;
    }

    /// The names of rows.
    std::vector<Json> names() const {
        std::vector<Json> named;
        const auto add = [&](const char* kind, int process, std::uint64_t thread, const char* key,
                             auto value) {
            named.push_back(
                {{"name", kind}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{key, value}}}});
        };
        const auto add_row = [&](int process, std::uint64_t thread, const std::string& name,
                                 std::size_t index) {
            add("thread_name", process, thread, "name", name);
            add("thread_sort_index", process, thread, "sort_index", index);
        };
        add("process_name", host, 0, "name", fmt::format("host: {} (process {})", program_.name, getpid()));
        add("process_sort_index", host, 0, "sort_index", 0);
        for (const auto& [thread, index] : threads_)
            add_row(host, thread, thread_name(program_, thread), index);
        for (const int number : devices_) {
            const Device device(number);
            const bool says_so = device.name().find("emulated") != std::string::npos;
            const char* kind = device.emulated() && !says_so ? " (emulated)" : "";
            add("process_name", process_of(number), 0, "name",
                fmt::format("device {}: {}{}", number, device.name(), kind));
            add("process_sort_index", process_of(number), 0, "sort_index", 1 + number);
        }
        for (const auto& [row, number] : rows_) {
            const auto& [device, stream, thread] = row;
            const std::string name = stream == 1   ? "legacy default stream"
                                     : stream == 2 ? "default stream of " + thread_name(program_, thread)
                                                   : fmt::format("stream {:#x}", stream);
            add_row(process_of(device), number, name, number);
        }
        return named;
    }

    std::vector<TraceEvent> in_order() const {
        using Kind = TraceEvent::Kind;
        std::vector<TraceEvent> events;
        const auto at = [](std::int64_t time) { return TraceSpan{time, time}; };
        for (const TraceRecord& record : trace_.records)
            events.push_back({Kind::call, &record, record.called});
        for (const auto& [number, operation] : operations_) {
            if (!operation.timed) continue;
            const TraceRecord* const record = operation.record;
            events.push_back({Kind::operation, record, operation.span});
            events.push_back({Kind::issued, record, at(record->called.begin)});
            events.push_back({Kind::begun, record, at(operation.span.begin)});
            for (const std::uint64_t number_before : record->after) {
                const Operation* const before = timed(number_before);
                if (before == nullptr) continue;
                // A viewer binds an arrow to the span that contains its time. A span does not contain its end, so leave
                // 1 ns earlier.
                const std::int64_t leaves = std::max(before->span.begin, before->span.end - 1);
                events.push_back({Kind::awaited, before->record, at(leaves), number});
                events.push_back({Kind::waited, record, at(operation.span.begin), number_before});
            }
        }
        std::ranges::stable_sort(events, {}, &TraceEvent::order);
        return events;
    }

    Json to_json(const TraceEvent& event) const {
        using Kind = TraceEvent::Kind;
        const TraceRecord& record = *event.record;
        const bool of_host = event.kind == Kind::call || event.kind == Kind::issued;
        const auto microseconds = [](std::int64_t nanoseconds) {
            return static_cast<double>(nanoseconds) / 1000;
        };
        Json json;
        if (event.is_span()) {
            const char* const kind = to_string(record.kind);
            json["name"] = of_host ? record.name : device_name(record);
            json["cat"] = !of_host && record.kind == CallKind::launch ? "kernel" : kind;
        } else {
            const bool issue = event.kind == Kind::issued || event.kind == Kind::begun;
            json["name"] = json["cat"] = issue ? "issue" : "wait";
            json["id"] =
                event.kind == Kind::awaited  ? fmt::format("wait {} {}", record.operation, event.other)
                : event.kind == Kind::waited ? fmt::format("wait {} {}", event.other, record.operation)
                                             : fmt::format("issue {}", record.operation);
        }
        const bool arrives = event.kind == Kind::begun || event.kind == Kind::waited;
        json["ph"] = event.is_span() ? "X" : arrives ? "f" : "s";
        if (arrives) json["bp"] = "e";
        json["pid"] = of_host ? host : process_of(record.stream->device().ordinal());
        json["tid"] = of_host ? record.thread : rows_.at(row_of(record));
        json["ts"] = microseconds(event.span.begin - trace_.recorded.begin);
        if (event.is_span()) {
            json["dur"] = microseconds(event.span.end - event.span.begin);
            json["args"] = arguments_of(record);
        }
        return json;
    }

  private:
    /// The operation of a call, and its time.
    struct Operation {
        const TraceRecord* record;
        TraceSpan span;
        bool timed;
    };

    const Operation* timed(std::uint64_t number) const {
        const auto found = operations_.find(number);
        return found != operations_.end() && found->second.timed ? &found->second : nullptr;
    }

    /// On a GPU, times are accurate to about a microsecond. Rounding must not make an operation begin before its call,
    /// before the end of the previous one on its stream, or before the end of those that it waited for.
    void find_spans() {
        std::map<StreamRow, std::int64_t> ends;
        for (auto& [number, operation] : operations_) {
            const TraceRecord& record = *operation.record;
            if (!record.ran) continue;
            TraceSpan span = *record.ran;
            std::int64_t& end = ends[row_of(record)];
            if (!record.stream->device().emulated()) {
                span.begin = std::max({span.begin, record.called.begin, end});
                for (const std::uint64_t before : record.after) {
                    if (const Operation* const found = timed(before)) {
                        span.begin = std::max(span.begin, found->span.end);
                    }
                }
                span.end = std::max(span.begin, span.end);
            }
            end = span.end;
            operation.span = span;
            operation.timed = true;
        }
    }

    const RecordedTrace& trace_;
    const TracedProgram& program_;
    std::map<std::uint64_t, Operation> operations_;  // by number
    std::map<StreamRow, std::size_t> rows_;          // from 1, in the order of first operations
    std::map<std::uint64_t, std::size_t> threads_;   // in the order of their first calls
    std::set<int> devices_;
};

/// Reads a file of /proc. Zero bytes, which separate the entries, become spaces.
std::string read_line(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(file), {});
    while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
    std::replace(text.begin(), text.end(), '\0', ' ');
    return text;
}

}  // namespace

TracedProgram TracedProgram::current() {
    TracedProgram program{program_invocation_short_name, read_line("/proc/self/cmdline")};
    const std::string own = read_line("/proc/self/comm");
    std::error_code ended;  // the thread may have ended
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task", ended)) {
        const std::uint64_t thread = std::stoull(each.path().filename());
        const std::string name = read_line(each.path() / "comm");
        if (thread == static_cast<std::uint64_t>(getpid())) {
            program.threads[thread] = "main thread";
        } else if (!name.empty() && name != own) {  // an unnamed thread has the program's name
            program.threads[thread] = name;
        }
    }
    return program;
}

void write_trace_events(std::ostream& out, const RecordedTrace& trace, const TracedProgram& program) {
    const Events events(trace, program);
    out << R"({"displayTimeUnit": "ns",)"
           "\n"
           R"("otherData": )"
        << events.metadata()
        << ",\n"
           R"("traceEvents": [)";
    const char* separator = "\n";
    const auto write = [&](const Json& json) {
        out << std::exchange(separator, ",\n") << json.dump(-1, ' ', false, Json::error_handler_t::replace);
    };
    for (const Json& name : events.names()) write(name);
    for (const TraceEvent& event : events.in_order()) write(events.to_json(event));
    out << "\n]}\n";
}

}  // namespace bascule
