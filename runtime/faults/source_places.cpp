#include <algorithm>
#include <deque>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

#include <bascule/jit/text/source.hpp>
#include <bascule/runtime/faults/source_places.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_places = 1024;

struct Place {
    std::string canonical;
    Source source;
};

struct Places {
    std::mutex mutex;
    std::deque<Place> newest_first;
};

Places& places() {
    static Places& instance = *new Places;
    return instance;
}

std::string_view without_indentation(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
}

}  // namespace

void remember_place(const Source& source, const CompileOptions& options) {
    const std::string canonical = program_name(source, options);
    Places& all = places();
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.newest_first, [&](const Place& place) { return place.canonical == canonical; });
    all.newest_first.push_front({canonical, source});
    if (all.newest_first.size() > most_places) all.newest_first.pop_back();
}

std::string with_user_places(std::string report) {
    static constexpr std::string_view lead = "line ";
    static constexpr std::string_view joint = " of ";
    Places& all = places();
    const std::lock_guard lock(all.mutex);
    for (const Place& place : all.newest_first) {
        for (std::size_t at = report.find(place.canonical); at != report.npos;
             at = report.find(place.canonical, at)) {
            const std::size_t end = at + place.canonical.size();
            const std::size_t begin = report.rfind(lead, at);
            const bool led =
                begin != report.npos && report.compare(at - joint.size(), joint.size(), joint) == 0;
            const int line = led ? std::atoi(report.c_str() + begin + lead.size()) : 0;
            const std::string mine =
                line > 0 ? fmt::format("{}:{}: {}", place.source.name, line + place.source.first_line - 1,
                                       without_indentation(source_line_of(place.source.text, line)))
                         : place.source.name;
            const std::size_t from = line > 0 ? begin : at;
            report.replace(from, end - from, mine);
            at = from + mine.size();
        }
    }
    return report;
}

}  // namespace bascule
