#include "graph/onnx/external_data.h"

#include <filesystem>
#include <fstream>

#include "graph/onnx/onnx_model.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/small_graph.h"
#include "support/file.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

// x + w, where w is [2, 3] in another file.
struct ExternalModel {
  ExternalModel() {
    model.input("x", {2, 3}).output("y").node("Add", {"x", "w"}, {"y"});
    weight = &model.initializer("w", onnx::TensorProto::FLOAT, {2, 3});
    weight->set_data_location(onnx::TensorProto::EXTERNAL);
    set("location", "weights.bin");
    const Tensor w = floats({2, 3}, {1, 2, 3, 4, 5, 6});
    bytes.assign(static_cast<const char*>(w.data()), static_cast<size_t>(w.bytes()));
    EXPECT_TRUE(write_file(scratch_path("weights.bin"), bytes).ok());
  }

  void set(const std::string& key, const std::string& value) {
    for (auto& entry : *weight->mutable_external_data()) {
      if (entry.key() == key) return entry.set_value(value);
    }
    auto& entry = *weight->add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }

  Result<Graph> read() const {
    EXPECT_TRUE(write_file(scratch_path("m.onnx"), model.bytes()).ok());
    return import_onnx(scratch_path("m.onnx"), {});
  }

  Tensor run() const {
    const Result<Graph> graph = read();
    EXPECT_TRUE(graph.ok()) << graph.error().message();
    return graph.ok() ? run_graph(*graph, {floats({2, 3}, {0, 0, 0, 10, 10, 10})})[0] : Tensor();
  }

  OnnxModel model;
  onnx::TensorProto* weight = nullptr;
  std::string bytes;
};

const std::vector<double> kSum = {1, 2, 3, 14, 15, 16};

TEST(ExternalData, IsReadFromTheFileBesideTheModel) {
  ExternalModel m;
  EXPECT_EQ(values_of(m.run()), kSum);
  m.set("offset", "0");
  m.set("length", "24");
  m.set("checksum", "of no interest");
  EXPECT_EQ(values_of(m.run()), kSum);
}

// At a multiple of the element's size bytes are used where they lie, elsewhere they are copied.
TEST(ExternalData, MayBeginAnywhere) {
  for (const size_t offset : {1u, 4u, 4096u}) {
    ExternalModel m;
    ASSERT_TRUE(write_file(scratch_path("weights.bin"), std::string(offset, '?') + m.bytes).ok());
    m.set("offset", std::to_string(offset));
    EXPECT_EQ(values_of(m.run()), kSum);
  }
}

// More than protobuf reads: only the tensors' bytes may, which lie where nothing else is written.
TEST(ExternalData, MayBeLargerThanAModel) {
  ExternalModel m;
  const int64_t far = (int64_t{1} << 32) + 4096;
  std::ofstream(scratch_path("weights.bin"), std::ios::binary).seekp(far) << m.bytes;
  m.set("offset", std::to_string(far));
  EXPECT_EQ(values_of(m.run()), kSum);
  fs::resize_file(scratch_path("m.onnx"), size_t{1} << 31);
  EXPECT_ERROR(import_onnx(scratch_path("m.onnx"), {}),
               "m.onnx: the file has more than 2 GB, the most that protobuf reads: save the model "
               "with external data");
  fs::remove(scratch_path("weights.bin"));
  fs::remove(scratch_path("m.onnx"));
}

TEST(ExternalData, IsOfEveryType) {
  for (const DTypeRow& row : kDTypes) {
    const Tensor w = integers({4}, {1, 0, 1, 0}, row.dtype);
    ASSERT_TRUE(write_file(scratch_path("w.bin"), tensor_to_proto("w", w).raw_data()).ok());
    OnnxModel model;
    model.input("x", {1}).output("y").node("Identity", {"w"}, {"y"});
    auto& weight = model.initializer("w", row.onnx, {4});
    weight.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& entry = *weight.add_external_data();
    entry.set_key("location");
    entry.set_value("w.bin");
    ASSERT_TRUE(write_file(scratch_path("m.onnx"), model.bytes()).ok());
    const Result<Graph> graph = import_onnx(scratch_path("m.onnx"), {});
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    EXPECT_EQ(values_of(*(*graph)[graph->outputs[0]].constant), values_of(w)) << row.name;
  }
}

TEST(ExternalData, StaysInTheModelsFolder) {
  ExternalModel m;
  ASSERT_TRUE(write_file(scratch_path("../outside.bin"), m.bytes).ok());
  m.set("location", "../outside.bin");
  EXPECT_ERROR(m.read(),
               "m.onnx: tensor \"w\" lies in the file \"../outside.bin\", which is outside the "
               "model's folder");
  m.set("location", fs::absolute(scratch_path("weights.bin")).string());
  EXPECT_ERROR(m.read(), "which is outside the model's folder");
  fs::remove(scratch_path("link.bin"));
  fs::create_symlink("../outside.bin", scratch_path("link.bin"));
  m.set("location", "link.bin");
  EXPECT_ERROR(m.read(), "\"link.bin\", a link to outside the model's folder");
  fs::remove(scratch_path("inside.bin"));
  fs::create_symlink("weights.bin", scratch_path("inside.bin"));
  m.set("location", "inside.bin");
  EXPECT_EQ(values_of(m.run()), kSum);
}

// Hugging Face's cache: snapshots/REVISION/onnx has links to files of one folder, blobs.
TEST(ExternalData, MayBeLinkedAsTheModelIs) {
  const ExternalModel m;
  const auto cache = fs::path(scratch_path("cache"));
  fs::remove_all(cache);
  fs::create_directories(cache / "snapshots" / "1" / "onnx");
  fs::create_directories(cache / "blobs");
  ASSERT_TRUE(write_file((cache / "blobs" / "ab12").string(), m.model.bytes()).ok());
  ASSERT_TRUE(write_file((cache / "blobs" / "cd34").string(), m.bytes).ok());
  const fs::path links = cache / "snapshots" / "1" / "onnx";
  fs::create_symlink("../../../blobs/ab12", links / "m.onnx");
  fs::create_symlink("../../../blobs/cd34", links / "weights.bin");
  EXPECT_TRUE(import_onnx((links / "m.onnx").string(), {}).ok());

  // A link to the model alone: its tensors lie beside the file that it leads to.
  const fs::path alone = cache / "alone.onnx";
  fs::create_symlink("blobs/ab12", alone);
  fs::rename(cache / "blobs" / "cd34", cache / "blobs" / "weights.bin");
  EXPECT_TRUE(import_onnx(alone.string(), {}).ok());

  fs::rename(cache / "blobs" / "weights.bin", cache / "elsewhere.bin");
  fs::remove(links / "weights.bin");
  fs::create_symlink("../../../elsewhere.bin", links / "weights.bin");
  EXPECT_ERROR(import_onnx((links / "m.onnx").string(), {}),
               "a link to outside the model's folder");
}

TEST(ExternalData, SaysWhatIsWrongWithThePlace) {
  ExternalModel m;
  m.set("length", "20");
  EXPECT_ERROR(m.read(), "tensor \"w\" has 20 bytes of external data, its shape 24");
  m.set("length", "24");
  m.set("offset", "4");
  EXPECT_ERROR(m.read(),
               "tensor \"w\" needs 24 bytes from byte 4 of \"weights.bin\", which has 24");
  m.set("offset", "99999999999999");
  EXPECT_ERROR(m.read(), "from byte 99999999999999 of \"weights.bin\", which has 24");
  m.set("offset", "-4");
  EXPECT_ERROR(m.read(), "has external data with the offset \"-4\", expected a number of bytes");
  m.set("offset", "0");
  m.set("location", "gone.bin");
  EXPECT_ERROR(m.read(),
               "tensor \"w\" lies in the file \"gone.bin\", which cannot be read: No such");
  m.set("location", ".");
  EXPECT_ERROR(m.read(), "which is no regular file");
  m.set("location", "");
  EXPECT_ERROR(m.read(), "tensor \"w\" lies in another file, whose name is missing");
  m.set("location", "weights.bin");
  EXPECT_ERROR(import_model(m.model), "but the model was read from no folder");
}

}  // namespace
}  // namespace pruner
