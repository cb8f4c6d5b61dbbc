// Names of buffers and variables -> identifiers of C, all different.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace pruner {

/// The identifiers of one source.
class Names {
 public:
  /// An identifier that resembles `name`, is no word of either dialect and was not given before.
  std::string add(std::string_view name);

 private:
  std::set<std::string, std::less<>> taken_;
};

}  // namespace pruner
