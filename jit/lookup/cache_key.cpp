#include <fmt/format.h>

#include <bascule/jit/compile/nvrtc_input.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/files/record.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/lookup/cache_key.hpp>
#include <bascule/jit/lookup/image_record.hpp>

namespace bascule {

// Record calls these functions and finds them by argument-dependent look-up.
BASCULE_RECORD(KeyFields, its.schema, its.text, its.arguments, its.headers, its.instances, its.purpose,
               its.functions_too, its.arch, its.nvrtc, its.include_paths, its.prelude)

namespace {

/// Identifies the format of entries: the Bascule version, how it reads the compiler's names, and the members.
const std::string& schema() {
    // Incremented when the same compiler output is read in another way.
    static constexpr const char* reading = "2";
    static const std::string text =
        fmt::format("bascule {} {} {}", BASCULE_VERSION, reading,
                    to_string(digest_of(HeaderManifest::format() + image_format())));
    return text;
}

}  // namespace

CacheKey key_of(const Program& program, const Nvrtc& nvrtc) {
    std::vector<std::string> arguments = to_arguments(program.options);
    // The debug lines of the image name a file in that directory.
    if (!program.options.keep_sources.empty())
        arguments.push_back("keep_sources=" + absolute_path(program.options.keep_sources));
    const std::string arch = to_string(program.arch);
    // The whole prelude, because the other fields of the key determine which part of it a program gets.
    static const std::string prelude = to_string(digest_of(whole_prelude()));
    const std::string made = program.maker == nullptr ? std::string() : program.maker->key();
    KeyFields fields{.schema = schema(),
                     .text = program.maker == nullptr ? program.source.text : made,
                     .arguments = {arguments.begin(), arguments.end()},
                     .headers = {program.options.headers.begin(), program.options.headers.end()},
                     .instances = {},
                     .purpose = static_cast<std::uint64_t>(program.purpose),
                     .functions_too = program.functions_too,
                     .arch = arch,
                     .nvrtc = nvrtc.identity().empty() ? nvrtc.path() : nvrtc.identity(),
                     .include_paths = {nvrtc.include_paths().begin(), nvrtc.include_paths().end()},
                     .prelude = prelude};
    for (const Instance& instance : program.instances)
        fields.instances.emplace_back(instance.kernel, instance.expression);
    ByteWriter out;
    Record(out).pass(fields);
    return key_from_text(std::move(out).take());
}

std::optional<KeyFields> fields_of(std::string_view key_text) {
    ByteReader in(key_text);
    KeyFields fields;
    Record(in).pass(fields);
    return in.at_end() ? std::optional(std::move(fields)) : std::nullopt;
}

CacheKey key_from_text(std::string text) {
    const Digest digest = digest_of(text);
    return {std::move(text), digest};
}

bool is_of_this_version(std::string_view key_text) { return ByteReader(key_text).text() == schema(); }

}  // namespace bascule
