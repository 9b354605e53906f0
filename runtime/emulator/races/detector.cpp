#include "races/detector.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace emulated::races {
namespace {

constexpr std::size_t most_reports = 100;

constinit thread_local Announcement announced;
thread_local Operation* running = nullptr;
thread_local bool keeps_books = false;

std::uint64_t bits_of(const Page& page, Access access, std::size_t word) noexcept {
    return page.of[static_cast<std::size_t>(access)][word];
}

std::uint64_t any_of(const Page& page, std::size_t word) noexcept {
    return page.of[0][word] | page.of[1][word] | page.of[2][word] | page.of[3][word];
}

std::uint64_t written(const Page& page, std::size_t word) noexcept {
    return bits_of(page, Access::write, word) | bits_of(page, Access::strong_write, word);
}

/// A mask of the bytes of a word (64 bytes) at which the accesses conflict and need an order.
std::uint64_t conflicts(const Page& a, const Page& b, std::size_t word) noexcept {
    return (bits_of(a, Access::write, word) & any_of(b, word)) |
           (bits_of(b, Access::write, word) & any_of(a, word)) |
           (bits_of(a, Access::strong_write, word) & bits_of(b, Access::read, word)) |
           (bits_of(b, Access::strong_write, word) & bits_of(a, Access::read, word));
}

/// True if every operation that races with `older` also races with `newer`, which comes after it.
bool stands_for(const Page& newer, const Page& older) noexcept {
    for (std::size_t word = 0; word < Page::words; ++word) {
        const std::uint64_t writes = bits_of(newer, Access::write, word);
        const std::uint64_t reads = bits_of(newer, Access::read, word) | writes;
        const std::uint64_t strong = bits_of(newer, Access::strong_write, word) | writes;
        const std::uint64_t missing = (bits_of(older, Access::write, word) & ~writes) |
                                      (bits_of(older, Access::read, word) & ~reads) |
                                      (bits_of(older, Access::strong_write, word) & ~strong) |
                                      (bits_of(older, Access::strong_read, word) & ~(strong | reads));
        if (missing != 0) return false;
    }
    return true;
}

/// Default streams have the same handle on every device, so the device is named.
std::string name_of_stream(const Announcement& announced) {
    const std::string name = announced.stream <= 1   ? "the legacy default stream"
                             : announced.stream == 2 ? "the per-thread default stream"
                                                     : fmt::format("stream {:#x}", announced.stream);
    return announced.device < 0 ? name : fmt::format("{} of device {}", name, announced.device);
}

std::string place(const Announcement& announced) {
    return fmt::format("{} on {}{}{}", announced.what, name_of_stream(announced),
                       announced.site[0] == '\0' ? "" : "\n      at ", announced.site);
}

}  // namespace

Announcement Announcement::in_a_graph(const Announcement& launch) const {
    Announcement both;
    both.stream = launch.stream;
    both.device = launch.device;
    std::snprintf(both.what, sizeof both.what, "%.200s in a graph", what);
    if (site[0] != '\0' && launch.site[0] != '\0') {
        std::snprintf(both.site, sizeof both.site, "%.240s; launched at %.240s", site, launch.site);
    } else {
        std::snprintf(both.site, sizeof both.site, "%s", site[0] != '\0' ? site : launch.site);
    }
    return both;
}

Detector& Detector::get() {
    static Detector& detector = *new Detector;
    return detector;
}

void Detector::switch_to(bool on) {
    const std::lock_guard lock(mutex_);
    if (on_.exchange(on) == on) return;
    history_.clear();
    begun_.clear();
    freed_.clear();
}

void Detector::announce(const Announcement& announcement) { announced = announcement; }
Announcement Detector::take_announcement() { return std::exchange(announced, {}); }

std::shared_ptr<Operation> Detector::begin(Timeline& timeline) {
    auto operation = std::make_shared<Operation>();
    operation->announced = take_announcement();
    const std::lock_guard lock(mutex_);
    if (timeline.newest.chain == 0) timeline.newest.chain = next_chain_++;
    operation->serial = ++statistics_.nodes;
    if (timeline.newest.count > 0) ++statistics_.edges;
    if (host_ != nullptr) timeline.known.leave_out(*host_);
    operation->host = host_;
    operation->before = timeline.known;
    ++timeline.newest.count;
    operation->moment = timeline.newest;
    timeline.known.learn(timeline.newest);
    begun_.push_back(operation);
    return operation;
}

void Detector::join(VectorClock& later, const VectorClock& earlier) {
    if (&later == &earlier || earlier.empty()) return;
    later.learn(earlier);
    const std::lock_guard lock(mutex_);
    ++statistics_.edges;
}

void Detector::set_bookkeeping(bool on) noexcept { keeps_books = on; }
bool Detector::bookkeeping() noexcept { return keeps_books; }

void Detector::host_learns(const VectorClock& done) {
    if (done.empty() || keeps_books) return;
    const std::lock_guard lock(mutex_);
    ++statistics_.edges;
    auto knows = host_ == nullptr ? std::make_shared<VectorClock>() : std::make_shared<VectorClock>(*host_);
    knows->learn(done);
    host_ = std::move(knows);
}

void Detector::compare(const Operation& operation, std::uint64_t number, const Page& page,
                       std::vector<Record>& records, std::vector<Race>& races) {
    std::erase_if(records, [&](const Record& record) {
        if (record.by.get() == &operation) return false;
        if (operation.comes_after(record.by->moment)) return stands_for(page, *record.page);
        Race* race = nullptr;
        for (std::size_t word = 0; word < Page::words; ++word) {
            const std::uint64_t both = conflicts(page, *record.page, word);
            if (both == 0) continue;
            if (race == nullptr) {
                const auto known = std::ranges::find(races, record.by, &Race::first);
                race = known != races.end() ? &*known : &races.emplace_back(Race{.first = record.by});
            }
            const std::uint64_t base = number * page_bytes + word * 64;
            const std::uint64_t first = base + static_cast<std::uint64_t>(std::countr_zero(both));
            const std::uint64_t end = base + 64 - static_cast<std::uint64_t>(std::countl_zero(both));
            race->address = race->bytes == 0 ? first : std::min(race->address, first);
            race->end = std::max(race->end, end);
            race->bytes += static_cast<std::uint64_t>(std::popcount(both));
            race->first_writes |= (written(*record.page, word) & both) != 0;
            race->second_writes |= (written(page, word) & both) != 0;
        }
        return false;
    });
}

void Detector::finish(const std::shared_ptr<Operation>& finished) {
    Operation& operation = *finished;
    const std::lock_guard lock(mutex_);
    std::vector<Race> races;
    for (auto& [number, page] : operation.log.pages()) {
        for (std::size_t word = 0; word < Page::words; ++word)
            statistics_.bytes += static_cast<std::uint64_t>(std::popcount(any_of(*page, word)));
        std::vector<Record>& records = history_[number];
        compare(operation, number, *page, records, races);
        records.push_back({finished, std::move(page)});
    }
    operation.log.pages().clear();
    statistics_.races += races.size();
    for (const Race& race : races) {
        if (reports_.size() < most_reports) reports_.push_back(report(race, finished));
    }
    operation.finished = true;
    forget_what_was_freed();
}

void Detector::forget_what_was_freed() {
    std::shared_ptr<const Operation> first;
    while (!begun_.empty() && ((first = begun_.front().lock()) == nullptr || first->finished))
        begun_.pop_front();
    while (!freed_.empty() && (begun_.empty() || freed_.front().serial < first->serial)) {
        forget_locked(freed_.front().address, freed_.front().bytes);
        freed_.pop_front();
    }
}

std::string Detector::report(Race race, std::shared_ptr<const Operation> issued_later) const {
    if (race.first->serial > issued_later->serial) {
        std::swap(race.first, issued_later);
        std::swap(race.first_writes, race.second_writes);
    }
    const Operation &first = *race.first, &second = *issued_later;
    const std::uint64_t reach = race.end - race.address;
    const std::string where =
        describe_ == nullptr ? fmt::format("at {:#x}", race.address) : describe_(race.address, reach);
    const auto does = [](bool writes) { return writes ? "writes" : "reads"; };
    const std::string bytes = race.bytes == reach ? fmt::format("{} byte{}", reach, reach == 1 ? "" : "s")
                                                  : fmt::format("{} of {} bytes", race.bytes, reach);
    const std::uint64_t seen =
        std::max(second.before.known_of(first.moment.chain),
                 second.host == nullptr ? 0 : second.host->known_of(first.moment.chain));
    const std::string as_far_as =
        seen == 0
            ? "It has waited for nothing of that stream yet."
            : fmt::format("It has waited for that stream up to its operation {}; this one is number {}.",
                          seen, first.moment.count);
    const std::string waiting = name_of_stream(second.announced);
    std::string awaited = name_of_stream(first.announced);
    if (awaited == waiting) awaited += " of another thread";  // all per-thread default streams are called 2
    return fmt::format(
        "stream race: two operations touch the same bytes, and nothing orders them\n"
        "  first {}\n"
        "  then {}\n"
        "  both touch {} {}: the first {}, the other {}\n"
        "  missing: {} must wait, before the {}, for what {} was given up to the {} (an event recorded there "
        "after it, or a synchronisation of the host). {}",
        place(first.announced), place(second.announced), bytes, where, does(race.first_writes),
        does(race.second_writes), waiting, second.announced.what, awaited, first.announced.what, as_far_as);
}

void Detector::forget(std::uint64_t address, std::uint64_t bytes) {
    if (!on()) return;
    const std::lock_guard lock(mutex_);
    forget_locked(address, bytes);
}

void Detector::forget_allocation(std::uint64_t address, std::uint64_t bytes) {
    if (!on()) return;
    const std::lock_guard lock(mutex_);
    for_pages(address, bytes, [&](std::uint64_t number, std::uint64_t first, std::uint64_t taken) {
        const auto found = history_.find(number);
        if (found == history_.end()) return;
        for (const Record& record : found->second) {
            if (std::string_view(record.by->announced.what).starts_with("allocation of "))
                record.page->remove(first, taken);
        }
    });
}

void Detector::note_freed(std::uint64_t address, std::uint64_t bytes) {
    if (!on()) return;
    const std::lock_guard lock(mutex_);
    freed_.push_back({address, bytes, statistics_.nodes});
}

void Detector::forget_locked(std::uint64_t address, std::uint64_t bytes) {
    for_pages(address, bytes, [&](std::uint64_t number, std::uint64_t first, std::uint64_t taken) {
        const auto found = history_.find(number);
        if (found == history_.end()) return;
        std::erase_if(found->second, [&](Record& record) {
            record.page->remove(first, taken);
            return record.page->empty();
        });
        if (found->second.empty()) history_.erase(found);
    });
}

std::vector<std::string> Detector::take_reports() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reports_, {});
}

std::vector<std::string> Detector::reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
}

Statistics Detector::statistics() {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

Running::Running(std::shared_ptr<Operation> operation) noexcept : operation_(std::move(operation)) {
    running = operation_.get();
}

Running::~Running() {
    running = nullptr;
    if (operation_ != nullptr) Detector::get().finish(operation_);
}

AccessLog* Running::log() noexcept { return running == nullptr ? nullptr : &running->log; }

}  // namespace emulated::races
