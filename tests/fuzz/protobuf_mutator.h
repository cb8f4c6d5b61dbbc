// Mutates a protobuf message for fuzz targets: most mutations change a field of the message.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "support/rng.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace pruner {

/// A message of the tree, and one of its fields.
struct MessageField {
  google::protobuf::Message* message;
  const google::protobuf::FieldDescriptor* field;
};

/// Every field that is set.
inline void add_fields(google::protobuf::Message& message, std::vector<MessageField>& fields) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    fields.push_back({&message, field});
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      add_fields(*reflection.MutableMessage(&message, field), fields);
    } else {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i)
        add_fields(*reflection.MutableRepeatedMessage(&message, field, i), fields);
    }
  }
}

/// One field changes: its number or text, how many it has, or it becomes another one's copy.
inline void mutate(google::protobuf::Message& root, Rng& rng) {
  using google::protobuf::FieldDescriptor;
  constexpr int64_t kNumbers[] = {0, 1, -1, 2, 3, 7, 16, 255, INT32_MAX, INT64_MAX, INT64_MIN};
  std::vector<MessageField> fields;
  add_fields(root, fields);
  if (fields.empty()) return;
  const auto any = [&] { return fields[static_cast<size_t>(rng.below(std::ssize(fields)))]; };
  const auto [message, field] = any();
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  const int count = field->is_repeated() ? reflection.FieldSize(*message, field) : 0;
  if (field->is_repeated() && rng.below(3) == 0) {
    if (rng.below(2) == 0) {
      reflection.SwapElements(message, field, static_cast<int>(rng.below(count)), count - 1);
    } else {
      reflection.RemoveLast(message, field);
    }
    return;
  }
  if (rng.below(8) == 0) return reflection.ClearField(message, field);
  const int at = count == 0 ? 0 : static_cast<int>(rng.below(count));
  const bool add = field->is_repeated() && rng.below(3) == 0;
  const auto put = [&](auto set, auto set_repeated, auto append, const auto& value) {
    if (add) return (reflection.*append)(message, field, value);
    if (field->is_repeated()) return (reflection.*set_repeated)(message, field, at, value);
    (reflection.*set)(message, field, value);
  };
  using google::protobuf::Reflection;
  const int64_t number = rng.below(2) == 0 ? rng.below(20) - 2 : kNumbers[rng.below(11)];
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return put(
          &Reflection::SetInt64, &Reflection::SetRepeatedInt64, &Reflection::AddInt64, number);
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&Reflection::SetInt32,
                 &Reflection::SetRepeatedInt32,
                 &Reflection::AddInt32,
                 static_cast<int32_t>(number));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(&Reflection::SetFloat,
                 &Reflection::SetRepeatedFloat,
                 &Reflection::AddFloat,
                 static_cast<float>(number));
    case FieldDescriptor::CPPTYPE_ENUM:
      return put(&Reflection::SetEnumValue,
                 &Reflection::SetRepeatedEnumValue,
                 &Reflection::AddEnumValue,
                 static_cast<int>(rng.below(24)));
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string text;
      const auto [other, texts] = any();
      if (texts->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {  // names have to be UTF-8 strings
        const Reflection& from = *other->GetReflection();
        text = texts->is_repeated()
                   ? from.GetRepeatedString(
                         *other, texts, static_cast<int>(rng.below(from.FieldSize(*other, texts))))
                   : from.GetString(*other, texts);
      } else {
        text = field->is_repeated() ? reflection.GetRepeatedString(*message, field, at)
                                    : reflection.GetString(*message, field);
        const size_t size = text.size();
        text.resize(size + 8);
        text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size, text.size()));
      }
      return put(
          &Reflection::SetString, &Reflection::SetRepeatedString, &Reflection::AddString, text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      if (!field->is_repeated()) return;
      google::protobuf::Message* added = reflection.AddMessage(message, field);
      added->CopyFrom(reflection.GetRepeatedMessage(*message, field, at));
      return;
    }
    default: return;
  }
}

/// Mutates as LLVMFuzzerCustomMutator() has to; `and_then` may change more of the message.
template <typename Message, typename Change>
size_t mutate(uint8_t* data, size_t size, size_t most, unsigned seed, const Change& and_then) {
  Rng rng(seed);
  Message message;
  if (rng.below(4) == 0 || !message.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, most);
  mutate(message, rng);
  and_then(message, rng);
  if (message.ByteSizeLong() > most) return LLVMFuzzerMutate(data, size, most);
  message.SerializeToArray(data, static_cast<int>(most));
  return message.ByteSizeLong();
}

}  // namespace pruner
