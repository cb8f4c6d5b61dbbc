// label: codegen
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/loader.h"
#include "golden.h"
#include "support/file.h"

namespace pruner {
namespace {

class LinkerTest : public testing::Test {
 protected:
  LinkerTest() : folder_(testing::TempDir() + "pruner_linker_" + std::to_string(getpid())) {
    std::filesystem::create_directory(folder_);
  }
  ~LinkerTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(write_file(path, bytes).ok());
    return path;
  }

  std::string folder_;
};

TEST_F(LinkerTest, MakesALibraryOfKernelsAndData) {
  const std::string blob = write("blob", "weights");
  const Result<std::string> data = assemble(
      ".section .rodata\n.globl blob\n.balign 64\nblob: .incbin \"" + blob + "\"\n.byte 0\n");
  ASSERT_TRUE(data.ok()) << data.error().message();
  const Result<Artifact> artifact =
      compile(matmul_program({12, 32, 16, 8, 3, 2, 8, 4}), cpu_target(""), "matmul");
  ASSERT_TRUE(artifact.ok());
  const std::vector<std::string> objects = {write("data.o", *data),
                                            write("kernel.o", artifact->object)};
  const std::string library = folder_ + "/lib.so";
  const Result<Unit> linked = link_shared_library(objects, library, {"blob"});
  ASSERT_TRUE(linked.ok()) << linked.error().message();
  void* handle = dlopen(library.c_str(), RTLD_NOW);
  ASSERT_TRUE(handle) << dlerror();
  EXPECT_STREQ(static_cast<const char*>(dlsym(handle, "blob")), "weights");
  EXPECT_FALSE(dlsym(handle, "matmul")) << "not exported";
  dlclose(handle);
  EXPECT_FALSE(std::filesystem::exists(library + ".exports"));
}

TEST_F(LinkerTest, CanLinkAgainAfterAnError) {
  EXPECT_ERROR(link_shared_library({folder_ + "/none.o"}, folder_ + "/lib.so", {}), "cannot open");
  const Result<std::string> data = assemble(".data\n.globl x\nx: .quad 1\n");
  ASSERT_TRUE(data.ok());
  EXPECT_TRUE(link_shared_library({write("data.o", *data)}, folder_ + "/lib.so", {"x"}).ok());
}

// lld draws a digit for each '%' of the path that it writes to.
TEST_F(LinkerTest, WritesWhereAPathHasPercentSigns) {
  const Result<std::string> data = assemble(".data\n.globl x\nx: .quad 1\n");
  ASSERT_TRUE(data.ok());
  const std::string object = write("data.o", *data), library = folder_ + "/50%/%25.so";
  std::filesystem::create_directory(folder_ + "/50%");
  const Result<Unit> linked = link_shared_library({object}, library, {"x"});
  ASSERT_TRUE(linked.ok()) << linked.error().message();
  EXPECT_TRUE(std::filesystem::exists(library));
}

TEST(Assemble, NamesTheLineThatIsWrong) {
  EXPECT_ERROR(assemble(".data\nfoo bar baz\n"), ":2:");
  EXPECT_ERROR(assemble(".incbin \"/nowhere\"\n"), "/nowhere");
}

}  // namespace
}  // namespace pruner
