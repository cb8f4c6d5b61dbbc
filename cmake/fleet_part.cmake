# Builds src/fleet/nats_broker.cpp and nkey.cpp with libnats and OpenSSL. No other files see the
# headers of libnats, and of the OpenSSL with which libnats encrypts. Without the two libraries the
# program has no fleets.
if(PRUNER_FLEET AND NOT PRUNER_STATIC)
  find_path(NATS_INCLUDE_DIR nats/nats.h)
  find_library(NATS_LIBRARY nats)
  find_package(OpenSSL QUIET)
  if(NATS_INCLUDE_DIR AND NATS_LIBRARY AND OPENSSL_FOUND)
    target_link_libraries(pruner_fleet PUBLIC ${NATS_LIBRARY} OpenSSL::Crypto)
    set_source_files_properties(
      ${PROJECT_SOURCE_DIR}/src/fleet/nats_broker.cpp ${PROJECT_SOURCE_DIR}/src/fleet/nkey.cpp
      PROPERTIES COMPILE_DEFINITIONS PRUNER_NATS=1)
  else()
    message(STATUS "libnats or OpenSSL not found (libnats-dev, libssl-dev): no tuning on other machines")
  endif()
endif()

# The program fleet_scale measures how much one server carries (bench/fleet.py). The target is built
# only by name.
if(TARGET pruner_fleet AND NOT PRUNER_STATIC)
  add_executable(fleet_scale EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/fleet_scale/scale.cpp)
  target_link_libraries(fleet_scale PRIVATE pruner_options pruner_fleet)
endif()
