#include <deque>
#include <map>
#include <mutex>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/trace/launch_site.hpp>

namespace bascule {
namespace {

constexpr std::size_t most_sites = 65536;

struct SiteRegistry {
    std::mutex mutex;
    std::deque<std::string> places;
    std::map<std::string, std::uint32_t> numbers;
};

SiteRegistry& site_registry() { return never_destroyed<SiteRegistry>(); }  // a fault may be reported at exit

}  // namespace

LaunchSite LaunchSite::of(const std::string& place) {
    SiteRegistry& all = site_registry();
    const std::lock_guard lock(all.mutex);
    const auto known = all.numbers.find(place);
    if (known != all.numbers.end()) return {known->second};
    if (all.places.size() >= most_sites) return {};
    all.places.push_back(place);
    const auto number = static_cast<std::uint32_t>(all.places.size());
    all.numbers.emplace(place, number);
    return {number};
}

std::string LaunchSite::place() const {
    SiteRegistry& all = site_registry();
    const std::lock_guard lock(all.mutex);
    return number == 0 || number > all.places.size() ? "" : all.places[number - 1];
}

}  // namespace bascule
