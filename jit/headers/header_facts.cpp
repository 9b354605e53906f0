#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <bascule/jit/headers/header_facts.hpp>
#include <bascule/jit/process/fork_safety.hpp>
#include <bascule/jit/process/never_destroyed.hpp>

namespace bascule {
namespace {

using KnownHeaders = std::unordered_map<std::string, std::shared_ptr<const HeaderFacts>>;

constexpr std::size_t most_known = 20'000;  // CUB includes some 700

/// Guarded by fork_safe_mutex().
KnownHeaders& known_headers() { return never_destroyed<KnownHeaders>(); }

}  // namespace

std::shared_ptr<const HeaderFacts> facts_of(const std::string& path, const FileIdentity& identity) {
    {
        const std::lock_guard lock(fork_safe_mutex());
        const auto known = known_headers().find(path);
        if (known != known_headers().end() && known->second->identity == identity &&
            identity.changed_ns + 2'000'000'000 < known->second->read_ns)
            return known->second;
    }
    auto facts = std::make_shared<HeaderFacts>();
    facts->identity = identity;
    facts->read_ns = now_ns();
    const std::optional<std::string> text = read_file(path);
    // If the size is not that of the content (/proc), the times are not reliable either.
    if (!text || text->size() != identity.bytes || place_at(path).identity != identity) return nullptr;
    facts->digest = digest_of(*text);
    facts->directives = include_directives(*text);
    const std::lock_guard lock(fork_safe_mutex());
    if (known_headers().size() > most_known) known_headers().clear();
    return known_headers()[path] = std::move(facts);
}

}  // namespace bascule
