// label: codegen
// An option that is about another kind of source than the one that is named is an error that says
// what to use instead; none is ignored.
#include <unistd.h>

#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "graph/onnx/onnx_model.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

/// Returns what a command that is wrong says, without "pruner: ".
std::string said(const std::vector<std::string>& command) {
  const ProgramRun run = run_program(command);
  EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
  EXPECT_TRUE(run.err.starts_with("pruner: ")) << run.err;
  EXPECT_TRUE(run.err.ends_with('\n')) << run.err;
  return run.err.substr(8, run.err.size() - 9);
}

std::vector<std::string> joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

const std::string kGiveDims =
    "an ONNX file has its own sizes; say what its open dimensions are with --dim NAME=N or "
    "--input-shapes NAME:1x3x224x224";
const std::string kOfFiles =
    "the inputs of built-in networks have sizes only; use --batch-size, --image-size or --seq-len";

TEST(SourceOptions, ThatDoNotActAreRefused) {
  const std::vector<std::string> file = {"m.onnx"}, images = {"--network", "resnet_18"},
                                 tokens = {"--network", "bert_tiny"}, op = {"--op", "relu 64"},
                                 dag = {"--task", "dag.json"};
  const auto is_of_networks = [](const std::string& flag) {
    return flag + " is of networks; an operator has the extents given";
  };
  struct Case {
    std::vector<std::string> source, option;
    std::string said;
  };
  std::vector<Case> cases = {
      {file, {"--batch-size", "1"}, "--batch-size: " + kGiveDims},
      {file, {"--image-size", "64"}, "--image-size: " + kGiveDims},
      {file, {"--seq-len", "64"}, "--seq-len: " + kGiveDims},
      {file, {"--cache-len", "64"}, "--cache-len: of an ONNX file --states names what is kept"},
      {images, {"--seq-len", "64"}, "--seq-len: this network takes images; use --image-size"},
      {images, {"--input-shapes", "x:1x3x64x64"}, "--input-shapes: " + kOfFiles},
      {images,
       {"--constant", "x=1"},
       "--constant: a built-in network has no input that may be a constant"},
      {tokens, {"--image-size", "64"}, "--image-size: this network takes sequences; use --seq-len"},
      {tokens, {"--input-shapes", "x:1x64"}, "--input-shapes: " + kOfFiles},
      {tokens, {"--cache-len", "128"}, "bert_tiny has no cache"}};
  for (const auto& [flag, value] : {std::pair("--batch-size", "1"),
                                    {"--image-size", "64"},
                                    {"--seq-len", "64"},
                                    {"--cache-len", "64"},
                                    {"--input-shapes", "x:1"},
                                    {"--constant", "x=1"},
                                    {"--states", "a=b"},
                                    {"--decode", "1"},
                                    {"--dim", "n=1"}})
    for (const auto& source : {op, dag})
      cases.push_back({source, {flag, value}, is_of_networks(flag)});
  for (const Case& each : cases)
    for (const char* command : {"tasks", "compile", "tune"})
      EXPECT_EQ(said(joined(joined({command}, each.source), each.option)), each.said) << command;
}

TEST(SourceOptions, ThatSayOneSizeTwiceAreRefused) {
  for (const auto& [network, dim, flag] : {std::tuple("resnet_18", "batch", "--batch-size"),
                                           {"resnet_18", "size", "--image-size"},
                                           {"bert_tiny", "seq", "--seq-len"}})
    EXPECT_EQ(
        said({"tasks", "--network", network, "--dim", std::string(dim) + "=64", flag, "32"}),
        std::string("--dim ") + dim + " and " + flag + " are the same size; leave out one of them");
  OnnxModel model;
  model.input("x", {1, 4}).output("y").node("Relu", {"x"}, {"y"});
  auto& dim = *model.graph().mutable_input(0)->mutable_type()->mutable_tensor_type();
  dim.mutable_shape()->mutable_dim(0)->set_dim_param("n");
  const Result<TemporaryFolder> folder = TemporaryFolder::make("");
  const std::string path = folder->path("m.onnx");
  ASSERT_TRUE(write_file(path, model.bytes()).ok());
  EXPECT_EQ(said({"tasks", path, "--dim", "n=2", "--input-shapes", "x:3x4"}),
            path + ": --input-shapes makes n 3 in \"x\", --dim makes it 2; leave out one of them");
}

TEST(SourceOptions, OfCommandsThatReadANetworkInAnotherWay) {
  EXPECT_EQ(said({"quantize", "m.onnx", "--calibration", "x.npz", "--batch-size", "2"}),
            "--batch-size: " + kGiveDims);
  EXPECT_EQ(said({"quantize", "--network", "gpt2", "--calibration", "x.npz", "--decode", "1"}),
            "--decode: a quantized file has one phase; give --decode to `pruner compile`");
  EXPECT_EQ(
      said({"networks", "export", "resnet_18", "--seq-len", "8", "-o", "/nonexistent/x.onnx"}),
      "--seq-len: this network takes images; use --image-size");
  EXPECT_EQ(said({"bench", "--module", "m.so", "--verify", "m.onnx", "--seq-len", "8"}),
            "--seq-len: " + kGiveDims);
  EXPECT_EQ(said({"bench", "--module", "m.so", "--seq-len", "8"}),
            "--seq-len: no network is named that it could be about");
  EXPECT_EQ(said({"features", "--records", "r.json", "--batch-size", "8"}),
            "--batch-size: no network is named that it could be about");
}

TEST(SourceOptions, OfAListActOnNetworksThatTakeThem) {
  const auto compare = [](const std::string& networks, const std::vector<std::string>& option) {
    return said(joined({"compare",
                        "--network",
                        networks,
                        "--modes",
                        "draft-only,random",
                        "--work-dir",
                        "/proc/nowhere"},
                       option));
  };
  // Both are read; what fails is the folder.
  EXPECT_NE(compare("resnet_18,bert_tiny", {"--seq-len", "16"}).find("/proc/nowhere"),
            std::string::npos);
  EXPECT_NE(
      compare("resnet_18,mobilenet_v2", {"--seq-len", "16"}).find("this network takes images"),
      std::string::npos);
}

TEST(CommandOptions, ThatHaveNoEffectAreRefused) {
  const std::vector<std::string> print = {"compile", "--op", "relu 64", "--print", "asm"};
  EXPECT_EQ(said(joined(print, {"-o", "m.so"})),
            "-o: --print makes no module; leave out one of them");
  EXPECT_EQ(said(joined(print, {"--verify"})),
            "--verify: --print makes no module to verify; leave out one of them");
  for (const char* command : {"compile", "tune"})
    EXPECT_EQ(said({command, "--op", "relu 64", "--dags", "d.json"}),
              "--dags is for the records of --pool; name them with --pool FILES");
  EXPECT_EQ(said({"tune", "--op", "relu 64", "--fresh", "--continue-tuning"}),
            "--fresh and --continue-tuning exclude each other: a new start has no records");
  const std::vector<std::string> tune = {"tune", "--op", "relu 64", "--work-dir", "/proc/nowhere"};
  EXPECT_EQ(said(joined(tune, {"--flush-l2"})), "--flush-l2 is of GPUs; the target is this CPU");
  for (const auto& [flag, value] : {std::pair("--kind", "k"), {"--key", "k"}, {"--ca", "c"}})
    EXPECT_EQ(said(joined(tune, {flag, value})),
              std::string(flag) + " is for workers of a fleet; give --fleet URL");
  EXPECT_EQ(said(joined(tune, {"--fleet", "nats://nowhere.invalid:1", "--devices", "cuda:0"})),
            "--devices names GPUs of this machine; workers of --fleet have their own");
  EXPECT_EQ(said({"train", "--dataset", "d.npz", "--file-cnt", "3"}),
            "--file-cnt is for the names of files in --save-path DIR");
  const std::vector<std::string> transfer = {
      "transfer", "--network", "resnet_18", "--pool", "r.json"};
  for (const auto& [flag, value] : {std::pair("--stops", "3"), {"--n-trials", "3"}})
    EXPECT_EQ(said(joined(transfer, {flag, value})),
              std::string(flag) + " is for the searches of --experiment");
  EXPECT_EQ(said(joined(transfer, {"--minute-check"})),
            "--minute-check is for the searches of --experiment");
  EXPECT_EQ(said({"transfer", "--experiment", "set.json", "-o", "m.so"}),
            "-o is for one network; --experiment has its networks and their records");
  EXPECT_EQ(said({"transfer", "--experiment", "set.json", "--network", "resnet_18"}),
            "--experiment set.json names the networks; leave out resnet_18");
  EXPECT_EQ(said({"transfer", "--op", "relu 64", "--pool", "r.json", "-o", "m.so"}),
            "-o: transfer makes modules of networks; `pruner compile --records` makes one of an "
            "operator");
  EXPECT_EQ(said(joined(transfer, {"--decode", "1"})),
            "--decode: transfer makes a module of one phase; `pruner tune --pool` makes both");
}

}  // namespace
}  // namespace pruner
