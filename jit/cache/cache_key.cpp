#include <bascule/jit/cache/cache_key.hpp>
#include <bascule/jit/compile/prelude.hpp>
#include <bascule/jit/files/digest.hpp>

namespace bascule {
namespace {

/// Entries hold what this version read from the compiler's names, as it read them.
constexpr const char* schema = "bascule " BASCULE_VERSION;

void add(std::string& text, std::string_view field) {
    text += std::to_string(field.size());
    text += ':';
    text += field;
    text += '\n';
}

CacheKey with_hash(std::string text) {
    const Digest digest = digest_of(text);
    return {std::move(text), digest.high, digest.low};
}

}  // namespace

CacheKey key_of(const Program& program, const Nvrtc& nvrtc) {
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
    add(key.text, program.functions_too ? "functions too" : "");
    add(key.text, to_string(program.arch));
    add(key.text, nvrtc.identity().empty() ? nvrtc.path() : nvrtc.identity());
    add(key.text, std::to_string(nvrtc.include_paths().size()));
    for (const std::string& path : nvrtc.include_paths()) add(key.text, path);
    // All of it: which part a program gets is decided by what is in the key already.
    static const std::string prelude = to_string(digest_of(whole_prelude()));
    add(key.text, prelude);
    return with_hash(std::move(key.text));
}

CacheKey key_from_text(std::string_view text) { return with_hash(std::string(text)); }

bool is_of_this_version(std::string_view key_text) {
    std::string beginning;
    add(beginning, schema);
    return key_text.starts_with(beginning);
}

}  // namespace bascule
