// NVRTC by dlopen(), and its compilations.
#include "codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "codegen/cuda/cubin_cache.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

// The few calls of NVRTC's C interface that are used, by its documentation. Programs are opaque,
// and a result that is not 0 is an error.
using NvrtcProgram = void*;
struct Nvrtc {
  int (*version)(int* major, int* minor) = nullptr;
  int (*count_archs)(int* count) = nullptr;
  int (*list_archs)(int* archs) = nullptr;
  int (*create)(NvrtcProgram*,
                const char*,
                const char*,
                int,
                const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(NvrtcProgram*) = nullptr;
  int (*compile)(NvrtcProgram, int, const char* const*) = nullptr;
  int (*log_size)(NvrtcProgram, size_t*) = nullptr;
  int (*log)(NvrtcProgram, char*) = nullptr;
  int (*cubin_size)(NvrtcProgram, size_t*) = nullptr;
  int (*cubin)(NvrtcProgram, char*) = nullptr;
  int (*ptx_size)(NvrtcProgram, size_t*) = nullptr;
  int (*ptx)(NvrtcProgram, char*) = nullptr;
  const char* (*error)(int) = nullptr;
};

struct Library {
  Nvrtc calls;
  NvrtcVersion version;
};

// 11.2 is the soname of all later versions 11.x, too.
constexpr const char* kNames[] = {
    "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};

// dlopen() itself looks in LD_LIBRARY_PATH and the system's folders.
std::vector<std::string> usual_paths() {
  std::vector<std::string> paths(std::begin(kNames), std::end(kNames));
  std::vector<std::string> toolkits;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator("/usr/local", none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("cuda")) toolkits.push_back(entry.path());
  }
  std::sort(toolkits.begin(), toolkits.end());
  for (const std::string& toolkit : toolkits) {
    for (const char* folder : {"/lib64/", "/lib/", "/targets/x86_64-linux/lib/"}) {
      for (const char* name : kNames) paths.push_back(toolkit + folder + name);
    }
  }
  return paths;
}

// The file that a function was loaded from.
std::string path_of(void* symbol) {
  Dl_info found;
  return dladdr(symbol, &found) != 0 ? found.dli_fname : "libnvrtc.so";
}

Result<Library> open_library(std::span<const std::string> paths) {
  void* handle = nullptr;
  for (const std::string& path : paths) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) break;
  }
  if (handle == nullptr) {
    return Error(
        "no CUDA toolkit: libnvrtc.so is neither in LD_LIBRARY_PATH nor in /usr/local/cuda*/lib64; "
        "install CUDA's NVRTC (cuda-nvrtc) or set LD_LIBRARY_PATH");
  }
  Library library;
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  Nvrtc& calls = library.calls;
  find(calls.version, "nvrtcVersion");
  find(calls.count_archs, "nvrtcGetNumSupportedArchs");
  find(calls.list_archs, "nvrtcGetSupportedArchs");
  find(calls.create, "nvrtcCreateProgram");
  find(calls.destroy, "nvrtcDestroyProgram");
  find(calls.compile, "nvrtcCompileProgram");
  find(calls.log_size, "nvrtcGetProgramLogSize");
  find(calls.log, "nvrtcGetProgramLog");
  find(calls.cubin_size, "nvrtcGetCUBINSize");
  find(calls.cubin, "nvrtcGetCUBIN");
  find(calls.ptx_size, "nvrtcGetPTXSize");
  find(calls.ptx, "nvrtcGetPTX");
  find(calls.error, "nvrtcGetErrorString");
  if (!missing.empty())
    return Error("libnvrtc.so has no ", missing, "; CUDA 11.2 or newer is needed");
  NvrtcVersion& version = library.version;
  version.path = path_of(reinterpret_cast<void*>(calls.compile));
  calls.version(&version.major, &version.minor);
  int count = 0;
  calls.count_archs(&count);
  version.archs.resize(static_cast<size_t>(std::max(count, 0)));
  if (count > 0) calls.list_archs(version.archs.data());
  return library;
}

// Looked for once; what is loaded stays.
const Result<Library>& library() {
  static const Result<Library> opened = open_library(usual_paths());
  return opened;
}

std::string print(const NvrtcVersion& version) {
  return "NVRTC " + std::to_string(version.major) + "." + std::to_string(version.minor);
}

// "sm_80" as this NVRTC knows it.
Result<std::string> arch_of(const Target& target, const NvrtcVersion& version) {
  std::string known;
  for (const int arch : version.archs) {
    const std::string name = "sm_" + std::to_string(arch);
    if (target.gpu.arch.empty() || target.gpu.arch == name) return name;
    // "sm_90a" is sm_90 with what only that one has.
    if (target.gpu.arch.size() == name.size() + 1 && target.gpu.arch.starts_with(name)) {
      return target.gpu.arch;
    }
    known += (known.empty() ? "" : ", ") + name;
  }
  return Error(print(version), " makes no code for \"", target.gpu.arch, "\"; it knows ", known);
}

enum class Form { kCubin, kPtx };

// The compiler serializes products of groups (PTX: wgmma) that it does not understand, puts in
// waits that are missing, or leaves out a request for registers (C7508), and only notes it. Returns
// such a note; empty: there is none.
std::string_view note_of_groups(std::string_view log) {
  for (const std::string_view note : {"are serialized", "wait is injected", "C7508"}) {
    const size_t at = log.find(note);
    if (at == std::string_view::npos) continue;
    const size_t begin = log.rfind('\n', at) + 1;  // the first line: 0
    return log.substr(begin, log.find('\n', at) - begin);
  }
  return "";
}

class Compilation {
 public:
  explicit Compilation(const Nvrtc& calls) : calls_(calls) {}
  Compilation(const Compilation&) = delete;
  ~Compilation() {
    if (program_ != nullptr) calls_.destroy(&program_);
  }

  Result<std::string> run(const std::string& source,
                          const std::vector<std::string>& options,
                          Form form) {
    int status = calls_.create(&program_, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
    if (status != 0) return Error("NVRTC: ", calls_.error(status));
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    status = calls_.compile(program_, static_cast<int>(words.size()), words.data());
    if (status != 0) return Error("NVRTC: ", calls_.error(status), ": ", log());
    const std::string notes = log();
    if (const std::string_view problem = note_of_groups(notes); !problem.empty())
      return Error("NVRTC: products of groups are not run as they are written: ", problem);
    return form == Form::kCubin ? bytes(calls_.cubin_size, calls_.cubin)
                                : bytes(calls_.ptx_size, calls_.ptx);
  }

 private:
  std::string log() const {
    const Result<std::string> text = bytes(calls_.log_size, calls_.log);
    return text.ok() ? text->c_str() : "";
  }

  Result<std::string> bytes(int (*size)(NvrtcProgram, size_t*),
                            int (*get)(NvrtcProgram, char*)) const {
    size_t count = 0;
    int status = size(program_, &count);
    std::string result(count, '\0');
    if (status == 0) status = get(program_, result.data());
    if (status != 0) return Error("NVRTC: ", calls_.error(status));
    return result;
  }

  const Nvrtc& calls_;
  NvrtcProgram program_ = nullptr;
};

}  // namespace

Result<NvrtcVersion> find_nvrtc() {
  TRY(library());
  return library()->version;
}

Result<NvrtcVersion> find_nvrtc(std::span<const std::string> paths) {
  TRY_ASSIGN(const Library found, open_library(paths));
  return found.version;
}

Result<std::string> cuda_arch(const Target& target) {
  TRY(library());
  return arch_of(target, library()->version);
}

Result<Target> with_instructions_of_its_own(Target target) {
  TRY_ASSIGN(target.gpu.arch, cuda_arch(target));
  constexpr int kFirst = 12;  // version
  if (const NvrtcVersion& version = library()->version; version.major < kFirst)
    return Error(print(version),
                 " knows no instructions that ",
                 target.gpu.arch,
                 " alone has; install NVRTC ",
                 kFirst,
                 " or newer");
  if (!target.gpu.arch.ends_with('a')) target.gpu.arch += 'a';
  return target;
}

Result<std::string> compile_to_cubin(const std::string& source, const Target& target) {
  TRY_ASSIGN(const std::string arch, cuda_arch(target));
  const std::vector<std::string> options = {"--gpu-architecture=" + arch, "--std=c++17"};
  // All that a cubin depends on: the compiler's version, the options, the source.
  std::string key = print(library()->version) + "\n";
  for (const std::string& option : options) key += option + "\n";
  return cached_cubin(key + source, [&]() -> Result<std::string> {
    return Compilation(library()->calls).run(source, options, Form::kCubin);
  });
}

Result<std::string> compile_to_ptx(const std::string& source, const Target& target) {
  TRY_ASSIGN(std::string arch, cuda_arch(target));
  // NVRTC stops at PTX if the architecture is virtual.
  arch.replace(0, 2, "compute");
  TRY_ASSIGN(const std::string text,
             Compilation(library()->calls)
                 .run(source, {"--gpu-architecture=" + arch, "--std=c++17"}, Form::kPtx));
  // NVRTC counts the NUL at the end.
  return std::string(text.c_str());
}

}  // namespace pruner
