// A global table of live objects by key.
#pragma once

#include <mutex>
#include <unordered_map>

namespace emulated::streams {

/// There is one table per type for the process. It is never destroyed, because graphs may be destroyed at the very end.
/// Thread-safe.
template <class Key, class Value>
class Known {
  public:
    static void add(const Key& key, Value* value) {
        const std::lock_guard lock(all().mutex);
        all().by_key[key] = value;
    }
    static void remove(const Key& key) {
        const std::lock_guard lock(all().mutex);
        all().by_key.erase(key);
    }
    /// Returns `use(value)`, during which no object is removed; a default value if there is no such object.
    template <class Use>
    static auto with(const Key& key, const Use& use) {
        const std::lock_guard lock(all().mutex);
        const auto found = all().by_key.find(key);
        return found == all().by_key.end() ? decltype(use(*found->second)){} : use(*found->second);
    }

  private:
    struct All {
        std::mutex mutex;
        std::unordered_map<Key, Value*> by_key;
    };
    static All& all() {
        static auto& made = *new All;
        return made;
    }
};

}  // namespace emulated::streams
