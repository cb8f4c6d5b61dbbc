// libnvrtc.so: compiles CUDA C for the CPU by this machine's C++ compiler. The "cubin" is a shared
// object behind a header (kernel_object.h), the PTX names the kernels and no more.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "kernel_object.h"
#include "ptx.h"
#include "rules.h"

namespace fs = std::filesystem;

namespace fakes {
namespace {

enum { kSuccess = 0, kInvalidInput = 3, kInvalidProgram = 4, kInvalidOption = 5, kCompilation = 6 };
constexpr int kArchs[] = {70, 75, 80, 86, 89, 90};

struct Program {
  std::string source, log, cubin, ptx;
};

struct Kernel {
  std::string name, threads;
  size_t at;  // place at which its definition begins
};

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<Kernel> kernels_of(const std::string& source) {
  static const std::regex kDefinition(
      R"((?:extern\s*"C"\s*)?__global__\s+void\s+(?:__launch_bounds__\s*\(\s*(\d+)[^)]*\)\s*)?(\w+)\s*\()");
  std::vector<Kernel> kernels;
  const auto end = std::sregex_iterator();
  for (auto i = std::sregex_iterator(source.begin(), source.end(), kDefinition); i != end; ++i) {
    kernels.push_back({(*i)[2], (*i)[1].matched ? (*i)[1].str() : "0", size_t(i->position())});
  }
  return kernels;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

// The source as C++: each kernel's shared arrays in a section of its own, whose size is theirs.
std::string as_cpp(const std::string& source, const std::vector<Kernel>& kernels) {
  std::string text = "#line 1 \"kernel.cu\"\n";
  size_t done = 0;
  for (const Kernel& kernel : kernels) {
    text += source.substr(done, kernel.at - done);
    done = kernel.at;
    const auto line = 1 + std::count(source.begin(), source.begin() + std::ptrdiff_t(done), '\n');
    text += "\n#undef __shared__\n#define __shared__ static __attribute__((section(\"fake_shared_" +
            kernel.name + "\")))\n#line " + std::to_string(line) + " \"kernel.cu\"\n";
  }
  text += source.substr(done) + "\n#line 1 \"kernels\"\n";
  for (const Kernel& kernel : kernels) {
    text += "FAKE_KERNEL(" + kernel.name + ", " + kernel.threads + ")\n";
  }
  replace_all(
      text, R"(asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)))", "x = fake_half_to_float(bits)");
  replace_all(text,
              R"(asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)))",
              "bits = fake_float_to_half(x)");
  static const std::regex kDynamic(
      R"(extern __shared__ __align__\(\d+\) unsigned char (\w+)\[\];)");
  text = std::regex_replace(
      text, kDynamic, "unsigned char* const $1 = (unsigned char*)fake_dynamic_shared;");
  return with_emulated_ptx(text);
}

// Returns an error for each construct in `text` that a few macros cannot emulate on a CPU.
std::string not_emulated(const std::string& text) {
  const std::pair<const char*, const char*> kForms[] = {
      {R"(\basm\b)", "inline PTX"},
      {R"(\bextern\s+__shared__)", "shared memory of a size that the launch says"},
      {R"(\b__half2?\b|cuda_fp16)", "the type __half"},
      {R"(\bnvcuda\b|\bwmma\b)", "matrix instructions"},
      {R"(\b__shfl_|\b__syncwarp\b|\b__ballot)", "what a warp does together"},
      {R"(\batomic[A-Z])", "atomic operations"}};
  std::string found;
  for (const auto& [form, name] : kForms) {
    if (!std::regex_search(text, std::regex(form))) continue;
    found += std::string("kernel.cu: error: the fake NVRTC does not emulate ") + name + "\n";
  }
  return found;
}

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "fake-nvrtc-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

const std::vector<std::string>& compiler() {
  static const std::vector<std::string> words = {FAKE_CXX,
                                                 "-std=c++17",
                                                 "-O1",
                                                 "-w",
                                                 "-fno-strict-aliasing",
                                                 "-ffp-contract=off",
                                                 "-fvisibility=hidden",
                                                 "-fno-toplevel-reorder",
                                                 "-shared",
                                                 "-fPIC",
                                                 "-Wl,-Bsymbolic",
                                                 "-I" FAKE_SOURCES,
                                                 "-include",
                                                 FAKE_PRELUDE};
  return words;
}

// The object that the compiler makes of `text`, or nothing and then what it says.
std::string run_compiler(const std::string& text, std::string& log) {
  const Folder folder;
  const std::string source = folder.path / "kernel.cpp", object = folder.path / "kernel.so";
  const std::string messages = folder.path / "log";
  std::ofstream(source) << text;
  std::vector<std::string> words = compiler();
  words.insert(words.end(), {source, "-o", object, "-lm"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(
      &actions, STDERR_FILENO, messages.c_str(), O_WRONLY | O_CREAT, S_IRUSR | S_IWUSR);
  pid_t child = -1;
  int status = -1;
  if (posix_spawnp(&child, FAKE_CXX, &actions, nullptr, arguments.data(), environ) == 0) {
    waitpid(child, &status, 0);
  }
  posix_spawn_file_actions_destroy(&actions);
  log = child < 0 ? "no compiler " FAKE_CXX : read(messages);
  return status == 0 ? read(object) : "";
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// With FAKE_CUDA_CACHE what was compiled before is found there.
std::string compile_object(const std::string& text, std::string& log) {
  const char* cache = std::getenv("FAKE_CUDA_CACHE");
  if (cache == nullptr) return run_compiler(text, log);
  std::string key = text + read(FAKE_PRELUDE) + read(FAKE_SOURCES "/space/fragment.h") +
                    read(fs::path(FAKE_PRELUDE).replace_filename("kernel_object.h"));
  for (const std::string& word : compiler()) key += word + "\n";
  char name[32];
  snprintf(name, sizeof name, "%016llx.so", static_cast<unsigned long long>(hash_of(key)));
  const fs::path path = fs::path(cache) / name;
  std::error_code ignored;
  if (fs::exists(path, ignored)) return read(path);
  const std::string object = run_compiler(text, log);
  if (object.empty()) return object;
  fs::create_directories(cache, ignored);
  const fs::path part = path.string() + "." + std::to_string(getpid());
  std::ofstream(part, std::ios::binary) << object;
  fs::rename(part, path, ignored);
  return object;
}

std::string with_header(const std::string& object, int arch) {
  ImageHeader header{};
  std::memcpy(header.magic, kImageMagic, sizeof header.magic);
  header.arch = static_cast<unsigned>(arch);
  header.bytes = object.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + object;
}

// "--gpu-architecture=sm_80", or compute_80, of which there is only PTX.
bool read_arch(const std::string& option, int& arch, bool& virtual_arch) {
  const std::string value = option.substr(option.find('=') + 1);
  virtual_arch = value.rfind("compute_", 0) == 0;
  if (!virtual_arch && value.rfind("sm_", 0) != 0) return false;
  arch = std::atoi(value.c_str() + value.find('_') + 1);
  return std::find(std::begin(kArchs), std::end(kArchs), arch) != std::end(kArchs);
}

int compile(Program& program, const std::vector<std::string>& options) {
  int arch = 52;
  bool virtual_arch = false, of_one_arch = false;
  for (const std::string& option : options) {
    const bool is_arch =
        option.rfind("--gpu-architecture=", 0) == 0 || option.rfind("-arch=", 0) == 0;
    of_one_arch |= is_arch && option.back() == 'a';
    if (is_arch && read_arch(option, arch, virtual_arch)) continue;
    if (is_arch || option.rfind('-', 0) != 0) {
      program.log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
      return kInvalidOption;
    }
  }
  const std::vector<Kernel> kernels = kernels_of(program.source);
  const std::string text = as_cpp(program.source, kernels);
  program.log = not_emulated(text);
  if (program.source.find("wgmma") != std::string::npos && !of_one_arch)
    program.log += "ptxas error: Instruction 'wgmma.mma_async' not supported on .target 'sm_" +
                   std::to_string(arch) + "'\n";
  if (kernels.empty()) program.log += "kernel.cu: error: no kernel in it\n";
  if (!program.log.empty()) return kCompilation;
  const std::string object = compile_object(text, program.log);
  if (object.empty()) return kCompilation;
  program.ptx = "//\n// Generated by a fake\n//\n.version 8.4\n.target sm_" + std::to_string(arch) +
                "\n.address_size 64\n";
  for (const Kernel& kernel : kernels) program.ptx += ".visible .entry " + kernel.name + "()\n";
  if (!virtual_arch) program.cubin = with_header(object, arch);
  return kSuccess;
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// Around each call: the rules, and the log.
template <typename Body>
int call(const char* name, Body body) {
  static std::mutex mutex;
  std::unique_lock lock(mutex);
  const Fate fate = Rules::get().next(name);
  if (fate.kind == Fate::kHangs || fate.kind == Fate::kKills) {
    lock.unlock();
    end_in(fate, name);
  }
  const int status = fate.kind == Fate::kFails ? fate.status : body();
  Rules::get().log(std::string(name) + " -> " + std::to_string(status));
  return status;
}

int copy_out(const std::string& text, size_t end, char* to) {
  std::memcpy(to, text.c_str(), text.size() + end);
  return kSuccess;
}

}  // namespace
}  // namespace fakes

using fakes::call;
using fakes::Program;

FAKE_EXPORT const char* nvrtcGetErrorString(int status) {
  static const char* const kTexts[] = {"NVRTC_SUCCESS",
                                       "NVRTC_ERROR_OUT_OF_MEMORY",
                                       "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                       "NVRTC_ERROR_INVALID_INPUT",
                                       "NVRTC_ERROR_INVALID_PROGRAM",
                                       "NVRTC_ERROR_INVALID_OPTION",
                                       "NVRTC_ERROR_COMPILATION"};
  return status >= 0 && status <= fakes::kCompilation ? kTexts[status] : "NVRTC_ERROR unknown";
}

FAKE_EXPORT int nvrtcVersion(int* major, int* minor) {
  return call(__func__, [&] {
    *major = fakes::Rules::get().settings().version / 1000;
    *minor = fakes::Rules::get().settings().version % 1000 / 10;
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  return call(__func__, [&] {
    *count = static_cast<int>(std::size(fakes::kArchs));
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvrtcGetSupportedArchs(int* archs) {
  return call(__func__, [&] {
    std::copy(std::begin(fakes::kArchs), std::end(fakes::kArchs), archs);
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvrtcCreateProgram(Program** program,
                                   const char* source,
                                   const char* /*name*/,
                                   int headers,
                                   const char* const* /*header_texts*/,
                                   const char* const* /*header_names*/) {
  return call(__func__, [&] {
    if (program == nullptr || fakes::text_of(source).empty() || headers != 0) {
      return fakes::kInvalidInput;
    }
    *program = new Program{source, "", "", ""};
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvrtcDestroyProgram(Program** program) {
  return call(__func__, [&] {
    if (program == nullptr || *program == nullptr) return fakes::kInvalidProgram;
    delete *program;
    *program = nullptr;
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  return call(__func__, [&]() -> int {
    if (program == nullptr) return fakes::kInvalidProgram;
    return fakes::compile(*program, std::vector<std::string>(options, options + count));
  });
}

FAKE_EXPORT int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  return call(__func__, [&] {
    *bytes = program->log.size() + 1;
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvrtcGetProgramLog(Program* program, char* log) {
  return call(__func__, [&] { return fakes::copy_out(program->log, 1, log); });
}

FAKE_EXPORT int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  return call(__func__, [&] {
    *bytes = program->cubin.size();
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvrtcGetCUBIN(Program* program, char* cubin) {
  return call(__func__, [&] { return fakes::copy_out(program->cubin, 0, cubin); });
}

FAKE_EXPORT int nvrtcGetPTXSize(Program* program, size_t* bytes) {
  return call(__func__, [&] {
    *bytes = program->ptx.size() + 1;
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvrtcGetPTX(Program* program, char* ptx) {
  return call(__func__, [&] { return fakes::copy_out(program->ptx, 1, ptx); });
}
