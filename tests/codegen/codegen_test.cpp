// label: codegen
#include "codegen/codegen.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "codegen/kernels.h"
#include "codegen/loader.h"
#include "golden.h"

namespace pruner {
namespace {

Program every_function() {
  ProgramBuilder b("functions");
  const TensorId x = b.input("x", {64}), h = b.input("h", {64}, DType::kFloat16),
                 y = b.output("y", {64});
  b.program.body = b.serial(4, [&](Expr o) {
    return b.vectorize(16, 16, [&](Expr l) {
      const Expr i = o * Expr(16) + l;
      Expr sum = call(Intrinsic::kPow, {b.read(x, {i}), cast(DType::kFloat32, b.read(h, {i}))});
      for (int f = 0; f < static_cast<int>(Intrinsic::kNot); ++f) {
        if (f != static_cast<int>(Intrinsic::kPow))
          sum = sum + call(static_cast<Intrinsic>(f), {b.read(x, {i})});
      }
      return b.store(y, {i}, sum);
    });
  });
  return b.program;
}

// Names that an object expects from elsewhere, and those that it offers.
struct Symbols {
  std::vector<std::string> undefined, global;
};

Symbols symbols_of(const std::string& object) {
  Symbols symbols;
  const char* data = object.data();
  Elf64_Ehdr header;
  std::memcpy(&header, data, sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), data + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* names = data + sections[section.sh_link].sh_offset;
    for (size_t i = 1; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, data + section.sh_offset + i * sizeof(symbol), sizeof(symbol));
      if (symbol.st_shndx == SHN_UNDEF) {
        symbols.undefined.push_back(names + symbol.st_name);
      } else if (ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL) {
        symbols.global.push_back(names + symbol.st_name);
      }
    }
  }
  return symbols;
}

TEST(Compile, MakesObjectsThatNeedNothingFromOutside) {
  for (const char* mcpu : {"", "haswell", "skylake-avx512", "znver4"}) {
    for (const Program& program : {every_function(), matmul_program({12, 32, 16, 8, 3, 2, 8, 4})}) {
      const Result<Artifact> artifact = compile(program, cpu_target(mcpu), "the_kernel");
      ASSERT_TRUE(artifact.ok()) << artifact.error().message();
      const Symbols symbols = symbols_of(artifact->object);
      EXPECT_EQ(symbols.undefined, std::vector<std::string>{}) << mcpu;
      EXPECT_EQ(symbols.global, std::vector<std::string>{"the_kernel"});
    }
  }
}

TEST(Compile, GivesTheSameBytesEachTime) {
  const Program program = conv_program({8, 6, 12, 16, 4, 2, 8, 2});
  const Result<Artifact> a = compile(program, cpu_target("haswell"), "k"),
                         b = compile(program, cpu_target("haswell"), "k");
  EXPECT_TRUE(a.ok() && b.ok() && a->object == b->object);
}

TEST(Compile, DescribesTheArguments) {
  const Result<Artifact> artifact = compile(every_function(), cpu_target("haswell"), "k");
  ASSERT_TRUE(artifact.ok());
  const Result<Artifact> again = artifact_from_json(to_json(*artifact), artifact->object);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->symbol, "k");
  ASSERT_EQ(again->arguments.size(), 3u);
  EXPECT_EQ(again->arguments[1].dtype, DType::kFloat16);
  EXPECT_EQ(again->arguments[2].shape, std::vector<int64_t>{64});
  EXPECT_TRUE(again->arguments[2].output);
}

TEST(Compile, NamesAnUnknownCpu) {
  EXPECT_ERROR(compile(every_function(), cpu_target("pentium9"), "k"),
               "LLVM knows no CPU \"pentium9\"");
}

TEST(Compile, SaysWhichBackendsThereAre) {
  Target target;
  target.backend = Backend::kCuda;
  EXPECT_ERROR(compile(every_function(), target, "k"), "is one for CPUs, the target is \"cuda\"");
}

TEST(Compile, RefusesAProgramThatBreaksTheRules) {
  Program program = every_function();
  program.args.pop_back();
  EXPECT_ERROR(compile(program, cpu_target(""), "k"),
               "program functions: y is missing in the arguments");
}

int lines_with(const std::string& text, std::initializer_list<const char*> words) {
  int count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    count += std::all_of(words.begin(), words.end(), [&](const char* word) {
      return line.find(word) != std::string::npos;
    });
  }
  return count;
}

// The tile that just fills the registers: its sums, a column of weights and one broadcast value.
TEST(CompileToText, KeepsTheAccumulatorsInRegisters) {
  struct {
    const char* mcpu;
    int width, lanes;
    const char* vector;
  } const rows[] = {
      {"znver4", 14, 16, "zmm"}, {"skylake-avx512", 14, 16, "zmm"}, {"haswell", 6, 8, "ymm"}};
  for (const auto& [mcpu, width, lanes, vector] : rows) {
    const Program program = conv_program({64, 56, 4 * width, 64, width, 2, lanes, 4});
    const Result<std::string> text =
        compile_to_text(program, cpu_target(mcpu), CodeText::kAssembly);
    ASSERT_TRUE(text.ok()) << text.error().message();
    EXPECT_EQ(lines_with(*text, {"vfmadd"}), width * 2 * 4) << mcpu;
    EXPECT_EQ(lines_with(*text, {"(%rsp)", vector}), 0) << mcpu;
    EXPECT_LE(lines_with(*text, {"vbroadcastss"}), width * 4) << mcpu;
  }
}

TEST(CompileToText, MakesReluOneInstruction) {
  ProgramBuilder b("relu");
  const TensorId x = b.input("x", {8}), y = b.output("y", {8});
  b.program.body =
      b.vectorize(8, 8, [&](Expr l) { return b.store(y, {l}, max(b.read(x, {l}), float_imm(0))); });
  const Result<std::string> text =
      compile_to_text(b.program, cpu_target("haswell"), CodeText::kAssembly);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(lines_with(*text, {"vmaxps"}), 1);
  EXPECT_EQ(lines_with(*text, {"vcmp"}) + lines_with(*text, {"vblend"}), 0);
}

TEST(LoadKernel, SaysWhatIsWrongWithAnObject) {
  EXPECT_ERROR(load_kernel("no object", "k"), "cannot link \"k\"");
  const Result<Artifact> artifact = compile(every_function(), cpu_target(""), "k");
  ASSERT_TRUE(artifact.ok());
  EXPECT_ERROR(load_kernel(artifact->object, "other"), "cannot link \"other\"");
}

// A machine without a linker loads a kernel that is linked already.
TEST(LoadKernel, LoadsWhatIsLinkedAlready) {
  const MatmulShape shape{12, 32, 16, 8, 3, 2, 8, 4};
  const Result<Artifact> artifact = compile(matmul_program(shape), cpu_target(""), "k");
  ASSERT_TRUE(artifact.ok());
  EXPECT_FALSE(is_shared_library(artifact->object));
  const Result<std::string> library = link_kernel(artifact->object, "k");
  ASSERT_TRUE(library.ok()) << library.error().message();
  EXPECT_TRUE(is_shared_library(*library));
  EXPECT_TRUE(load_kernel(*library, "k").ok());
  EXPECT_ERROR(load_kernel(*library, "other"), "cannot load \"other\": it is not in the library");
  EXPECT_ERROR(load_kernel(library->substr(0, library->size() / 2), "k"), "cannot load \"k\"");
}

}  // namespace
}  // namespace pruner
