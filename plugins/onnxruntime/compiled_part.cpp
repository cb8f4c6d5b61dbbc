#include "onnxruntime/compiled_part.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "onnxruntime/program.h"
#include "onnxruntime/scratch.h"
#include "support/cpu_budget.h"

namespace pruner::ort {

namespace fs = std::filesystem;

static constexpr size_t kMostLoaded = 8;       // modules of a part
static constexpr size_t kMostRanges = 8;       // ranges of a part that have a module
static constexpr size_t kMostRefused = 2;      // ranges of a part that may fail to compile
static constexpr int64_t kLeastEnd = 8;        // a range ends here or above
static constexpr size_t kMostIdle = 8;         // instances of a module that no run uses
static constexpr char kWeights[] = "weights";  // the file of the constants beside a model

namespace {

// A file as it is on the disk now, and the threads of its instances.
using OpenedAs = std::tuple<std::string, uint64_t, int64_t, int64_t, int64_t, int>;

OpenedAs opened_as(const std::string& path, int threads) {
  struct stat found = {};
  stat(path.c_str(), &found);
  std::error_code ignored;
  return {fs::weakly_canonical(path, ignored).string(),
          found.st_ino,
          found.st_size,
          found.st_mtim.tv_sec,
          found.st_mtim.tv_nsec,
          threads};
}

// The modules that sessions of this process have open, each by the name that it was loaded by. The
// loader takes a name that it knows for the file that it has loaded by it, whatever the file is
// now.
struct OpenModules {
  struct Opened {
    OpenedAs as;
    std::weak_ptr<Instances> instances;  // none: they are being closed
  };
  std::mutex mutex;
  std::map<std::string, Opened> by_name;

  static OpenModules& all() {
    static auto* const open = new OpenModules;  // sessions may end after this library's own objects
    return *open;
  }

  std::shared_ptr<Instances> find(const OpenedAs& as) const {
    for (const auto& [name, opened] : by_name) {
      if (opened.as != as) continue;
      if (std::shared_ptr<Instances> instances = opened.instances.lock()) return instances;
    }
    return nullptr;
  }
  // The path, written in a way that is in no use.
  std::string name_for(const std::string& path) const {
    const fs::path file(path);
    std::string folder = file.has_parent_path() ? file.parent_path().string() : ".", name;
    do {
      name = folder + "/" + file.filename().string();
      folder += "/.";
    } while (by_name.contains(name));
    return name;
  }
};

}  // namespace

Result<std::shared_ptr<Instances>> Instances::open(const std::string& path, int threads) {
  OpenModules& open = OpenModules::all();
  const OpenedAs as = opened_as(path, threads);
  std::shared_ptr<Instances> made;
  const std::lock_guard lock(open.mutex);  // let go before `made`, whose end takes it
  if (std::shared_ptr<Instances> opened = open.find(as)) return opened;
  const std::string name = open.name_for(path);
  made.reset(new Instances(path, name, threads));
  TRY_ASSIGN(Module first, made->take());
  made->give_back(std::move(first));
  open.by_name[name] = {as, made};
  return made;
}

// No library is loaded by the name until this one is unloaded.
Instances::~Instances() {
  OpenModules& open = OpenModules::all();
  const std::lock_guard lock(open.mutex);
  idle_.clear();
  open.by_name.erase(name_);
}

Result<Module> Instances::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Module module = std::move(idle_.back());
      idle_.pop_back();
      return module;
    }
  }
  std::string error;
  std::optional<Module> module = Module::load(name_, threads_, &error);
  if (!module) return Error(error);
  return *std::move(module);
}

void Instances::give_back(Module module) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(module));
}

namespace {

// Makes a file name of everything that a module depends on.
class Key {
 public:
  Key() { XXH3_128bits_reset(state_.get()); }

  void add(const void* data, size_t bytes) {
    XXH3_128bits_update(state_.get(), &bytes, sizeof bytes);
    XXH3_128bits_update(state_.get(), data, bytes);
  }
  void add(const std::string& text) { add(text.data(), text.size()); }
  // Adds a file by its size and time.
  void add_file(const std::string& path) {
    struct stat found = {};
    stat(path.c_str(), &found);
    add(&found.st_size, sizeof found.st_size);
    add(&found.st_mtim, sizeof found.st_mtim);
  }
  std::string text() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const uint64_t half : {hash.high64, hash.low64}) {
      for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
    }
    return text;
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

// The lines of /proc/cpuinfo that say what code runs here.
std::string cpu_text() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, text;
  while (std::getline(file, line) && !line.empty()) {
    if (line.rfind("model name", 0) == 0 || line.rfind("flags", 0) == 0 ||
        line.rfind("Features", 0) == 0)
      text += line;
  }
  return text;
}

std::string shape_text(const std::vector<std::vector<int64_t>>& shapes) {
  std::string text;
  for (const std::vector<int64_t>& shape : shapes) {
    text += text.empty() ? "" : "_";
    for (size_t d = 0; d < shape.size(); ++d)
      text += (d == 0 ? "" : "x") + std::to_string(shape[d]);
  }
  static constexpr size_t kMostOfFileName = 200;
  return text.size() > kMostOfFileName ? "" : text;
}

}  // namespace

Result<std::shared_ptr<CompiledPart>> CompiledPart::make(const GraphText& graph,
                                                         const Part& part,
                                                         const Settings& settings) {
  const auto made = std::make_shared<CompiledPart>();
  made->settings_ = settings;
  made->inputs_ = part.inputs;
  // Dimensions without a name have one of their own.
  for (NamedType& input : made->inputs_) {
    for (size_t d = 0; d < input.type.dim_names.size(); ++d) {
      std::string& name = input.type.dim_names[d];
      if (name.empty()) name = input.name + "_axis_" + std::to_string(d);
    }
  }
  made->is_static_ = part.is_static();
  made->model_ = onnx_of(graph, part, kWeights);
  TRY_ASSIGN(made->program_, find_program(settings.program));
  Key key;
  key.add(made->model_);
  for (const std::string& name : part.constants) {
    const Constant& constant = graph.constants.at(name);
    key.add(constant.data, constant.bytes);
  }
  for (const std::string& text : {cpu_text(),
                                  std::to_string(usable_cpus()),
                                  settings.budget,
                                  settings.precision,
                                  settings.denormals,
                                  settings.numerics})
    key.add(text);
  key.add_file(made->program_);
  if (!settings.records.empty()) key.add_file(settings.records);
  made->folder_ = settings.cache_dir + "/" + key.text();
  std::error_code code;
  fs::create_directories(made->folder_, code);
  if (code) return Error(made->folder_, ": cannot be made: ", code.message());

  Shapes shapes;
  for (const NamedType& input : part.inputs) shapes.push_back(guessed(input.type, settings.dims));
  if (!made->is_static_) TRY(made->keep_weights(graph, part));
  TRY_ASSIGN(auto module, made->compile(shapes, [&](const std::string& folder) {
    return write_weights(graph, part.constants, folder + "/" + kWeights);
  }));
  made->modules_.emplace_front(std::move(shapes), std::move(module));
  return made;
}

// ONNX Runtime forgets the constants once the session is there; other shapes need them later.
Result<Unit> CompiledPart::keep_weights(const GraphText& graph, const Part& part) const {
  const std::string kept = folder_ + "/" + kWeights;
  if (fs::exists(kept)) return Unit{};
  const Scratch scratch(folder_);
  const std::string written = scratch.path() + "/" + kWeights;
  TRY(write_weights(graph, part.constants, written));
  std::error_code code;
  fs::rename(written, kept, code);
  if (code) return Error(kept, ": cannot be made: ", code.message());
  return Unit{};
}

// A model and its constants are read in one folder.
Result<Unit> CompiledPart::link_weights(const std::string& folder) const {
  const std::string kept = folder_ + "/" + kWeights;
  std::error_code code;
  fs::create_hard_link(kept, folder + "/" + kWeights, code);
  if (code) return Error(kept, ": cannot be linked: ", code.message());
  return Unit{};
}

Result<std::shared_ptr<CompiledPart>> CompiledPart::load(const std::string& path,
                                                         const Settings& settings) {
  const auto made = std::make_shared<CompiledPart>();
  TRY_ASSIGN(auto instances, Instances::open(path, settings.threads));
  made->modules_.emplace_front(Shapes(), std::move(instances));
  return made;
}

Result<std::shared_ptr<CompiledPart>> CompiledPart::load_bytes(const std::string& bytes,
                                                               const Settings& settings) {
  // A library is loaded from a file.
  std::string path = fs::temp_directory_path().string() + "/pruner-module-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return Error(path, ": cannot be made");
  close(file);
  Result<Unit> written = write_bytes(bytes, path);
  Result<std::shared_ptr<CompiledPart>> part =
      written.ok() ? load(path, settings) : Result<std::shared_ptr<CompiledPart>>(written.error());
  if (part.ok()) {
    (*part)->temporary_ = path;
  } else {
    unlink(path.c_str());
  }
  return part;
}

CompiledPart::~CompiledPart() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Result<std::shared_ptr<Instances>> CompiledPart::at(const Shapes& shapes) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(
      modules_, shapes, [](const auto& module) -> auto& { return module.first; });
  if (found != modules_.end()) {
    modules_.splice(modules_.begin(), modules_, found);
    return modules_.front().second;
  }
  // Beside the guess one shape has a module of its own, which compiles sooner: it may be the only
  // one.
  const std::optional<Dims> extents = extents_of(shapes);
  if (modules_.size() > 1 && extents) {
    if (std::shared_ptr<Instances> made = ranged(*extents)) return made;
  }
  TRY_ASSIGN(auto made,
             compile(shapes, [&](const std::string& folder) { return link_weights(folder); }));
  modules_.emplace_front(shapes, std::move(made));
  if (modules_.size() > kMostLoaded) modules_.pop_back();
  return modules_.front().second;
}

std::optional<Dims> CompiledPart::extents_of(const Shapes& shapes) const {
  Dims extents;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TensorType& type = inputs_[i].type;
    if (!type.ranked || shapes[i].size() != type.shape.size()) return std::nullopt;
    for (size_t d = 0; d < type.shape.size(); ++d) {
      if (type.shape[d] >= 0) continue;
      const auto [at, is_new] = extents.try_emplace(type.dim_names[d], shapes[i][d]);
      if (at->second != shapes[i][d] || shapes[i][d] < 1) return std::nullopt;
    }
  }
  return extents;
}

std::shared_ptr<Instances> CompiledPart::ranged(const Dims& extents) {
  const auto holds = [&](const auto& module) {
    return std::ranges::all_of(module.first, [&](const auto& range) {
      const int64_t extent = extents.at(range.first);
      return extent >= range.second.first && extent <= range.second.second;
    });
  };
  const auto found = std::ranges::find_if(of_ranges_, holds);
  if (found != of_ranges_.end()) return found->second;
  // Up to the next power of two: from 1, or from the power of two below.
  Ranges wide, narrow;
  for (const auto& [name, extent] : extents) {
    const auto power = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
    const int64_t end = std::max(power, kLeastEnd);
    wide[name] = {1, end};
    narrow[name] = {static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent))), end};
  }
  Shapes open;
  for (const NamedType& input : inputs_) open.push_back(input.type.shape);
  for (const Ranges& ranges : {wide, narrow}) {
    if (of_ranges_.size() == kMostRanges || refused_.size() >= kMostRefused) return nullptr;
    if (std::ranges::find(refused_, ranges) != refused_.end()) continue;
    Result<std::shared_ptr<Instances>> made = compile(
        open, [&](const std::string& folder) { return link_weights(folder); }, ranges);
    if (made.ok()) {
      of_ranges_.emplace_back(ranges, *std::move(made));
      return of_ranges_.back().second;
    }
    refused_.push_back(ranges);
  }
  return nullptr;
}

Result<std::shared_ptr<Instances>> CompiledPart::compile(const Shapes& shapes,
                                                         const PutWeights& put,
                                                         const Ranges& ranges) const {
  std::string name = shape_text(shapes);
  for (const auto& [dim, range] : ranges)
    name += "_" + std::to_string(range.first) + "-" + std::to_string(range.second);
  const std::string path = folder_ + "/module" + name + ".so";
  if (fs::exists(path)) {
    Result<std::shared_ptr<Instances>> opened = Instances::open(path, settings_.threads);
    if (opened.ok()) return opened;  // else it is damaged: made again
  }
  TRY(write_module(shapes, put, ranges, path));
  return Instances::open(path, settings_.threads);
}

Result<Unit> CompiledPart::write_module(const Shapes& shapes,
                                        const PutWeights& put,
                                        const Ranges& ranges,
                                        const std::string& path) const {
  const Scratch scratch(folder_);
  if (scratch.path().empty()) return Error(folder_, ": no folder can be made there");
  const std::string model = scratch.path() + "/model.onnx", made = scratch.path() + "/module.so";
  TRY(write_bytes(model_ + onnx_of(inputs_, shapes), model));
  TRY(put(scratch.path()));
  const auto precise = [&](std::vector<std::string> arguments) {
    const std::pair<std::string, std::string> flags[] = {{"--precision", settings_.precision},
                                                         {"--numerics", settings_.numerics}};
    for (const auto& [flag, value] : flags)
      if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
    for (const auto& [name, range] : ranges) {
      const auto [least, most] = range;
      arguments.insert(arguments.end(),
                       {"--dim", name + "=" + std::to_string(least) + ".." + std::to_string(most)});
    }
    return arguments;
  };
  std::vector<std::string> compile = {"compile", model, "-o", made};
  std::vector<std::string> records;
  if (!settings_.records.empty()) records.push_back(settings_.records);
  if (!settings_.budget.empty()) {
    const std::string tuned = scratch.path() + "/tuned";
    TRY(run_program(program_,
                    precise({"tune",
                             model,
                             "--budget",
                             settings_.budget,
                             "--work-dir",
                             tuned,
                             "--allow-untrained"}),
                    scratch.path()));
    // A part without a kernel to tune leaves none.
    std::error_code code;
    const std::string made_now = tuned + "/records.json";
    if (fs::file_size(made_now, code) > 0 && !code) records.push_back(made_now);
  }
  for (const std::string& file : records) compile.insert(compile.end(), {"--records", file});
  if (!settings_.denormals.empty())
    compile.insert(compile.end(), {"--denormals", settings_.denormals});
  TRY(run_program(program_, precise(compile), scratch.path()));
  std::error_code code;
  fs::rename(made, path, code);
  if (code) return Error(path, ": cannot be made: ", code.message());
  return Unit{};
}

}  // namespace pruner::ort
