#include "bundle/bundle.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "golden.h"
#include "support/file.h"
#include "support/temporary_folder.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

Task product() {
  return make_task(*parse_operator("matmul 16 32 24"), *parse_target("llvm -mcpu=haswell", 1), "m");
}

Record record_of(int32_t tile) {
  Record record;
  record.workload_key = product().key;
  record.target = print(product().target);
  record.task_name = "m";
  record.sketch_name = "tiled";
  record.decisions = {{"tile", tile}};
  record.device = "somewhere";
  record.threads = 1;
  record.origin = "search";
  record.mode = "pam";
  return record;
}

struct Bundles : testing::Test {
  /// Three programs of one task; that of the second could not be built.
  std::string write(const NKey* builder = nullptr) const {
    std::string path = folder->path("b");
    BundleHead head{
        .version = "1", .target = *parse_target("llvm -mcpu=haswell", 3), .network_bytes = 12};
    head.options.max_repeats = 7;
    Result<BundleWriter> writer = BundleWriter::open(path, head, builder);
    EXPECT_TRUE(writer.ok());
    for (const int tile : {1, 2, 3}) {
      Build build;
      build.build_s = 0.5;
      build.artifact.object = std::string(1000, static_cast<char>('a' + tile));
      build.artifact.symbol = "kernel";
      if (tile == 2) build = {MeasureError::kCompileHost, "no", 0.1, {}};
      EXPECT_TRUE(writer->append(product(), record_of(tile), build).ok());
    }
    EXPECT_EQ(writer->programs(), 3);
    return path;
  }

  /// The programs of a bundle, until its end or an error.
  struct Content {
    std::vector<BundledProgram> programs;
    std::string error;
    bool cut_short = false;
  };
  static Content read(const std::string& path, const BundleTrust& trust = {.anybody = true}) {
    Content content;
    Result<BundleReader> reader = BundleReader::open(path, trust);
    if (!reader.ok()) return {{}, reader.error().message()};
    while (true) {
      Result<std::optional<BundledProgram>> program = reader->next();
      if (!program.ok()) content.error = program.error().message();
      if (!program.ok() || !*program) break;
      EXPECT_EQ(reader->task((*program)->task).key, product().key);
      content.programs.push_back(*std::move(*program));
    }
    content.cut_short = reader->cut_short();
    return content;
  }

  static void put(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  Result<TemporaryFolder> folder = TemporaryFolder::make("");
};

TEST_F(Bundles, AreReadAsTheyWereWritten) {
  const std::string path = write();
  const Result<BundleReader> reader = BundleReader::open(path, {.anybody = true});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->head().version, "1");
  EXPECT_EQ(reader->head().target.threads, 3);
  EXPECT_EQ(reader->head().options.max_repeats, 7);
  EXPECT_EQ(reader->head().network_bytes, 12);
  const Content content = read(path);
  EXPECT_EQ(content.error, "");
  EXPECT_FALSE(content.cut_short);
  ASSERT_EQ(content.programs.size(), 3u);
  EXPECT_EQ(content.programs[0].build.artifact.object, std::string(1000, 'b'));
  EXPECT_EQ(content.programs[0].build.build_s, 0.5);
  EXPECT_EQ(content.programs[1].build.error, MeasureError::kCompileHost);
  EXPECT_EQ(content.programs[1].build.error_text, "no");
  EXPECT_EQ(content.programs[2].record.decisions, record_of(3).decisions);
  EXPECT_EQ(content.programs[2].record.mode, "pam");
  EXPECT_TRUE(content.programs[2].record.result.ok()) << "nothing is known yet";
}

TEST_F(Bundles, ThatAreCutShortHaveWhatComesBefore) {
  const std::string whole = *read_file(write());
  const std::string path = folder->path("cut");
  size_t last = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    put(path, std::string_view(whole).substr(0, size));
    const Content content = read(path);
    EXPECT_GE(content.programs.size(), last) << size;
    last = content.programs.size();
    EXPECT_TRUE(!content.error.empty() || content.cut_short) << size;
  }
  EXPECT_EQ(last, 3u) << "without its end";
}

TEST_F(Bundles, WithAWrongByteAreErrors) {
  const std::string whole = *read_file(write());
  const std::string path = folder->path("bad");
  const std::vector<std::string> objects = {std::string(1000, 'b'), "", std::string(1000, 'd')};
  size_t passed = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    put(path, bad);
    const Content content = read(path);
    if (content.error.empty() && !content.cut_short) ++passed;
    for (size_t k = 0; k < content.programs.size(); ++k) {
      EXPECT_EQ(content.programs[k].build.artifact.object, objects[k]) << "byte " << i;
      EXPECT_EQ(content.programs[k].record.decisions[0].second, k + 1);
    }
  }
  // A wrong byte passes in the place of a signature that is absent, or in bits that zstd ignores.
  EXPECT_LT(passed, whole.size() / 50);
}

// An entry behind a missing entry could not be unpacked.
TEST_F(Bundles, EndWithTheFirstEntryThatCannotBeWritten) {
  const std::string path = folder->path("b");
  Build build;
  build.artifact.symbol = "kernel";
  {
    Result<BundleWriter> writer = BundleWriter::open(path, {.target = product().target}, nullptr);
    ASSERT_TRUE(writer.ok() && writer->append(product(), record_of(1), build).ok());
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = signal(SIGXFSZ, SIG_IGN);
    const rlimit full{std::filesystem::file_size(path) + 10, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    EXPECT_FALSE(writer->append(product(), record_of(2), build).ok());
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    EXPECT_ERROR(writer->append(product(), record_of(3), build), "cannot be written");
  }
  const Content content = read(path);
  EXPECT_EQ(content.error, "");
  EXPECT_TRUE(content.cut_short);
  EXPECT_EQ(content.programs.size(), 1u);
}

TEST_F(Bundles, RunForThoseWhoAreTrustedOnly) {
  EXPECT_NE(read(write(), {}).error.find("is signed by nobody; --unsigned"), std::string::npos);
  const Result<NKey> builder = make_nkey(), other = make_nkey();
  if (!builder.ok()) GTEST_SKIP() << builder.error().message();
  const std::string path = write(&*builder);
  EXPECT_EQ(read(path, {.keys = {other->public_key, builder->public_key}}).programs.size(), 3u);
  EXPECT_NE(
      read(path, {.keys = {other->public_key}}).error.find("by nobody in the file of --trust"),
      std::string::npos);
  EXPECT_EQ(read(path).programs.size(), 3u);
}

TEST_F(Bundles, ReplaceBundlesOnly) {
  const std::string path = folder->path("b");
  put(path, "precious");
  EXPECT_ERROR(BundleWriter::open(path, {.target = product().target}, nullptr),
               path + ": is there and no bundle; it is left alone");
  put(path, "");
  EXPECT_FALSE(BundleWriter::open(path, {.target = product().target}, nullptr).ok());
  std::filesystem::remove(path);
  write();
  write();
  EXPECT_EQ(read(path).programs.size(), 3u);
  put(path, "pruner bundle 2\nhead");
  EXPECT_NE(read(path).error.find("of another format"), std::string::npos);
  put(path, "precious");
  EXPECT_NE(read(path).error.find("is no bundle"), std::string::npos);
  EXPECT_FALSE(BundleReader::open(folder->path("none"), {}).ok());
}

}  // namespace
}  // namespace pruner
