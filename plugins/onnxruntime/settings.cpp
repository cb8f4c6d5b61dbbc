#include "onnxruntime/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

namespace pruner::ort {

static Result<int64_t> whole_number(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return Error("the option ", name, " is \"", text, "\", expected a whole number");
}

static Result<Dims> read_dims(const std::string& text) {
  Dims dims;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const size_t equals = part.find('=');
    if (equals == std::string::npos)
      return Error("the option dims has \"", part, "\", expected name=number");
    const std::string name = part.substr(0, equals);
    TRY_ASSIGN(dims[name], whole_number("dims: " + name, part.substr(equals + 1)));
    at = end + 1;
  }
  return dims;
}

static std::string default_cache() {
  if (const char* set = std::getenv("PRUNER_ONNXRUNTIME_CACHE")) return set;
  const char* home = std::getenv("HOME");
  return (home == nullptr ? std::string("/tmp") : std::string(home)) + "/.cache/pruner/onnxruntime";
}

// `kPrefix` is the beginning of the session's entries for this provider.
static const std::string kPrefix = "ep.prunerexecutionprovider.";

// Returns an error if the session has an option of this provider that is none of `known`.
static Result<Unit> check_names(const Calls& ort,
                                const SessionOptions* options,
                                const std::vector<std::string>& known) {
  TRY_ASSIGN(const std::vector<std::string> given, ort.config_names(options, kPrefix));
  for (const std::string& name : given) {
    if (std::ranges::find(known, name) != known.end()) continue;
    std::string names;
    for (const std::string& each : known) names += (names.empty() ? "" : ", ") + each;
    return Error("the option \"", name, "\" is unknown; there are ", names);
  }
  return Unit{};
}

// Checks the file of --records; a missing file would leave every part to ONNX Runtime.
static Result<Unit> check_records(const std::string& path) {
  std::error_code code;
  if (path.empty() || std::filesystem::exists(path, code)) return Unit{};
  return Error("the option records is \"", path, "\", expected a file of `pruner tune`");
}

// Checks "30s", "3m" or "1h30m": a number without a unit is an error here, not in each part.
static Result<Unit> check_budget(const std::string& text) {
  const bool has_unit =
      text.empty() || std::string_view("smh").find(text.back()) != std::string::npos;
  if (has_unit) return Unit{};
  return Error("the option budget is \"", text, "\", which has no unit; write 30s, 3m or 1h");
}

static Result<Unit> check_one_of(const char* name,
                                 const std::string& text,
                                 const char* one,
                                 const char* other) {
  if (text.empty() || text == one || text == other) return Unit{};
  return Error("the option ", name, " is \"", text, "\", expected ", one, " or ", other);
}

Result<Settings> read_settings(const Calls& ort, const SessionOptions* options) {
  std::vector<std::string> known;
  const auto option = [&](const std::string& name, const std::string& fallback = "") {
    known.push_back(name);
    return ort.config(options, kPrefix + name, fallback);
  };
  Settings settings;
  TRY_ASSIGN(settings.program, option("program"));
  TRY_ASSIGN(settings.records, option("records"));
  TRY_ASSIGN(settings.budget, option("budget"));
  TRY_ASSIGN(settings.precision, option("precision"));
  TRY_ASSIGN(settings.denormals, option("denormals"));
  TRY_ASSIGN(settings.numerics, option("numerics"));
  TRY_ASSIGN(settings.cache_dir, option("cache_dir", default_cache()));
  TRY_ASSIGN(const std::string threads, option("threads", "0"));
  TRY_ASSIGN(settings.threads, whole_number("threads", threads));
  TRY_ASSIGN(const std::string min_nodes, option("min_nodes", "3"));
  TRY_ASSIGN(settings.min_nodes, whole_number("min_nodes", min_nodes));
  TRY_ASSIGN(const std::string dims, option("dims"));
  TRY_ASSIGN(settings.dims, read_dims(dims));
  TRY(check_names(ort, options, known));
  TRY(check_records(settings.records));
  TRY(check_budget(settings.budget));
  TRY(check_one_of("denormals", settings.denormals, "flush", "keep"));
  TRY(check_one_of("numerics", settings.numerics, "onnx", "ort"));
  TRY_ASSIGN(const std::string context, ort.config(options, "ep.context_enable", "0"));
  TRY_ASSIGN(const std::string inside, ort.config(options, "ep.context_embed_mode", "0"));
  TRY_ASSIGN(settings.context_file, ort.config(options, "ep.context_file_path"));
  settings.context = context == "1";
  settings.context_inside = inside == "1";
  return settings;
}

}  // namespace pruner::ort
