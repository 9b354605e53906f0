#include <xxhash.h>

#include <fmt/format.h>

#include <bascule/jit/cache_key.hpp>
#include <bascule/jit/reflection.hpp>

namespace bascule {
namespace {

constexpr const char* schema = "bascule 1";

void add(std::string& text, std::string_view field) { text += fmt::format("{}:{}\n", field.size(), field); }

}  // namespace

CacheKey key_of(const Program& program, const Nvrtc& nvrtc, const std::string& user_headers) {
    CacheKey key;
    add(key.text, schema);
    add(key.text, program.source.text);
    const std::vector<std::string> arguments = to_arguments(program.options);
    add(key.text, std::to_string(arguments.size()));
    for (const std::string& argument : arguments) add(key.text, argument);
    add(key.text, std::to_string(program.options.headers.size()));
    for (const auto& [name, text] : program.options.headers) {
        add(key.text, name);
        add(key.text, text);
    }
    add(key.text, std::to_string(program.instances.size()));
    for (const Instance& instance : program.instances) {
        add(key.text, instance.kernel);
        add(key.text, instance.expression);
    }
    add(key.text, std::to_string(static_cast<int>(program.purpose)));
    add(key.text, to_string(program.arch));
    add(key.text, fmt::format("{}.{}", nvrtc.version().major, nvrtc.version().minor));
    add(key.text, nvrtc.path());
    add(key.text, std::to_string(nvrtc.include_paths().size()));
    for (const std::string& path : nvrtc.include_paths()) add(key.text, path);
    add(key.text, prelude_text());
    add(key.text, user_headers);
    const XXH128_hash_t hash = XXH3_128bits(key.text.data(), key.text.size());
    key.hash_high = hash.high64;
    key.hash_low = hash.low64;
    return key;
}

}  // namespace bascule
