#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <bascule/jit/headers/header_facts.hpp>
#include <bascule/jit/process/fork_safety.hpp>
#include <bascule/jit/process/never_destroyed.hpp>

namespace bascule {
namespace {

using HeaderFactsPointer = std::shared_ptr<const HeaderFacts>;

class KnownHeaders {
  public:
    HeaderFactsPointer find(const std::string& path, const FileIdentity& identity) {
        const std::lock_guard lock(fork_safe_mutex());
        const auto known = facts_.find(path);
        if (known == facts_.end() || known->second->identity != identity) return nullptr;
        const bool settled = identity.changed_ns + 2'000'000'000 < known->second->read_ns;
        return settled ? known->second : nullptr;
    }
    void add(const std::string& path, HeaderFactsPointer facts) {
        constexpr std::size_t most_files = 20'000;  // CUB reaches some 700
        const std::lock_guard lock(fork_safe_mutex());
        if (facts_.size() > most_files) facts_.clear();
        facts_[path] = std::move(facts);
    }

  private:
    std::unordered_map<std::string, HeaderFactsPointer> facts_;
};

KnownHeaders& known_headers() { return never_destroyed<KnownHeaders>(); }

}  // namespace

std::shared_ptr<const HeaderFacts> facts_of(const std::string& path, const FileIdentity& identity) {
    if (HeaderFactsPointer known = known_headers().find(path, identity)) return known;
    auto facts = std::make_shared<HeaderFacts>();
    facts->identity = identity;
    facts->read_ns = now_ns();
    const std::optional<std::string> text = read_file(path);
    // Where its size says nothing (/proc), its times say nothing either.
    if (!text || text->size() != identity.bytes || place_at(path).identity != identity) return nullptr;
    facts->digest = digest_of(*text);
    facts->directives = include_directives(*text);
    known_headers().add(path, facts);
    return facts;
}

}  // namespace bascule
