// PASSES: join-launches
//
// Nests that no matrix unit computes: the first one's threads wait for each other, the second one's
// are fewer and do not. Both report failed checks in one word. The third one's are fewer, and wait.

// CHECK:       polyblocks.launches = [
// CHECK-SAME:    {arguments = [{argument = 0 : i64}, {workspace = 0 : i64}, {argument = 2 : i64}, {workspace = 64 : i64}], block = [8, 1, 1], grid = [5, 1, 1], kernel = "norm_joined_1"}
// CHECK-SAME:    kernel = "waiting"
// CHECK:       gpu.func @norm_joined_1(%[[X:.*]]: memref<8xf32> {llvm.readonly}, %[[Y:.*]]: memref<8xf32>, %[[F:.*]]: memref<1xi32>, %[[Z:.*]]: memref<16xf32>) workgroup(%[[S:.*]] : memref<8xf32{{.*}}>)
// CHECK-SAME:    known_block_size = array<i32: 8, 1, 1>
// CHECK:         %[[B:.*]] = gpu.block_id x
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %[[S]]
// CHECK:           gpu.barrier
// CHECK:           memref.atomic_rmw maxu %{{.*}}, %[[F]]
// CHECK:         } else {
// CHECK:           %[[T:.*]] = gpu.thread_id x
// CHECK:           %[[FEW:.*]] = arith.cmpi ult, %[[T]], %c4
// CHECK:           scf.if %[[FEW]] {
// CHECK:             memref.store %{{.*}}, %[[Z]]
// CHECK:             memref.atomic_rmw maxu %{{.*}}, %[[F]]
module attributes {gpu.container_module, polyblocks.arguments = [
    {constant = false, dtype = "float32", name = "x", role = "input", shape = array<i64: 8>, strides = array<i64: 1>, updates = -1 : i64},
    {constant = false, dtype = "float32", name = "y", role = "input", shape = array<i64: 8>, strides = array<i64: 1>, updates = -1 : i64},
    {constant = false, dtype = "int32", name = "status", role = "status", shape = array<i64: 1>, strides = array<i64: 1>, updates = -1 : i64}], polyblocks.launches = [
    {arguments = [{argument = 0 : i64}, {workspace = 0 : i64}, {argument = 2 : i64}], block = [8, 1, 1], grid = [2, 1, 1], kernel = "norm"},
    {arguments = [{argument = 0 : i64}, {workspace = 64 : i64}, {argument = 2 : i64}], block = [4, 1, 1], grid = [3, 1, 1], kernel = "cache"},
    {arguments = [{argument = 0 : i64}, {workspace = 128 : i64}], block = [4, 1, 1], grid = [3, 1, 1], kernel = "waiting"}]} {
  gpu.module @kernels {
    gpu.func @norm(%x: memref<8xf32> {llvm.readonly}, %y: memref<8xf32>, %f: memref<1xi32>) workgroup(%s: memref<8xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 8, 1, 1>, known_grid_size = array<i32: 2, 1, 1>, polyblocks.kind = "reduction", polyblocks.resident = 1 : i32, polyblocks.sources = ["a x.py:1"]} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<8xf32>
      memref.store %v, %s[%b] : memref<8xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      memref.store %v, %y[%b] : memref<8xf32>
      %was = memref.atomic_rmw maxu %one, %f[%c0] : (i32, memref<1xi32>) -> i32
      gpu.return
    }
    gpu.func @cache(%x: memref<8xf32> {llvm.readonly}, %y: memref<16xf32>, %f: memref<1xi32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 3, 1, 1>, polyblocks.kind = "scatter", polyblocks.resident = 1 : i32, polyblocks.sources = ["b x.py:2"]} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1 : i32
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<8xf32>
      memref.store %v, %y[%b] : memref<16xf32>
      %was = memref.atomic_rmw maxu %one, %f[%c0] : (i32, memref<1xi32>) -> i32
      gpu.return
    }
    gpu.func @waiting(%x: memref<8xf32> {llvm.readonly}, %y: memref<16xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, known_grid_size = array<i32: 3, 1, 1>, polyblocks.kind = "reduction", polyblocks.resident = 1 : i32, polyblocks.sources = ["c x.py:3"]} {
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<8xf32>
      gpu.barrier
      memref.store %v, %y[%b] : memref<16xf32>
      gpu.return
    }
  }
}
