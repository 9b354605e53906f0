#include <utility>

#include <bascule/jit/cache/entry_format.hpp>
#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/headers/header_manifest.hpp>

namespace bascule {

const std::string& entry_format() {
    static const std::string format = [] {
        FormatText text;
        Image image;
        Record(text).pass(image);
        return to_string(digest_of(HeaderManifest::format() + std::move(text).take()));
    }();
    return format;
}

}  // namespace bascule
