// PASSES: join-launches
//
// A kernel that a matrix unit computes, and one that reads its result: blocks of the second wait for
// those of the first, and the shared buffers of both begin in the same bytes.

// CHECK:       polyblocks.launches = [
// CHECK-SAME:    kernel = "first_joined_1"
// CHECK-SAME:    grid = [5, 1, 1], kernel = "second_joined_2"
// CHECK:       gpu.func @second_joined_2(
// CHECK-SAME:    workgroup(%[[S:.*]] : memref<48xi8, #gpu.address_space<workgroup>>, %{{.*}} : memref<1xi32, #gpu.address_space<workgroup>>)
// CHECK-SAME:    polyblocks.unit = "mma"
// CHECK-DAG:     %[[A:.*]] = memref.view %[[S]][%c32{{.*}}][] : {{.*}} to memref<8xf16, #gpu.address_space<workgroup>>
// CHECK-DAG:     %[[B:.*]] = memref.view %[[S]][%c0{{.*}}][] : {{.*}} to memref<10xf32, #gpu.address_space<workgroup>>
// CHECK:         scf.if
// CHECK:           memref.store %{{.*}}, %[[A]]
// CHECK:           llvm.fence release
// CHECK:         } else {
// CHECK:           llvm.fence acquire
// CHECK:           memref.store %{{.*}}, %[[B]]
module attributes {gpu.container_module, polyblocks.arguments = [
    {constant = false, dtype = "float32", name = "x", role = "input", shape = array<i64: 2>, strides = array<i64: 1>, updates = -1 : i64},
    {constant = false, dtype = "int8", name = "workspace", role = "workspace", shape = array<i64: 136>, strides = array<i64: 1>, updates = -1 : i64}], polyblocks.launches = [
    {arguments = [{argument = 0 : i64}, {workspace = 0 : i64}], block = [32, 1, 1], grid = [2, 1, 1], kernel = "first"},
    {arguments = [{workspace = 0 : i64}, {workspace = 64 : i64}], block = [32, 1, 1], grid = [3, 1, 1], kernel = "second"},
    {arguments = [{workspace = 64 : i64}, {workspace = 128 : i64}], block = [32, 1, 1], grid = [2, 1, 1], kernel = "third"}]} {
  gpu.module @kernels {
    gpu.func @first(%x: memref<2xf32> {llvm.noalias, llvm.readonly}, %y: memref<2xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2, 1, 1>, polyblocks.estimate = {bound = "main", bytes = {main = 8 : i64}, flops = 0 : i64, floor_bytes = 8 : i64, iterations = 2 : i64, moved_bytes = 8 : i64, predicted_seconds = 1.0e-6 : f64, seconds = {main = 1.0e-6 : f64}}, polyblocks.kind = "pointwise", polyblocks.resident = 1 : i32, polyblocks.sources = ["a x.py:1"]} {
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<2xf32>
      memref.store %v, %y[%b] : memref<2xf32>
      gpu.return
    }
    gpu.func @second(%x: memref<2xf32> {llvm.noalias, llvm.readonly}, %y: memref<3xf32>) workgroup(%s: memref<16xf16, #gpu.address_space<workgroup>>, %t: memref<8xf16, #gpu.address_space<workgroup>>) kernel attributes {polyblocks.unit = "mma", known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 3, 1, 1>, polyblocks.estimate = {bound = "main", bytes = {main = 8 : i64}, flops = 0 : i64, floor_bytes = 8 : i64, iterations = 2 : i64, moved_bytes = 8 : i64, predicted_seconds = 1.0e-6 : f64, seconds = {main = 1.0e-6 : f64}}, polyblocks.kind = "pointwise", polyblocks.resident = 1 : i32, polyblocks.sources = ["b x.py:2"]} {
      %c0 = arith.constant 0 : index
      %b = gpu.block_id x
      %v = memref.load %x[%c0] : memref<2xf32>
      %h = arith.truncf %v : f32 to f16
      memref.store %h, %t[%b] : memref<8xf16, #gpu.address_space<workgroup>>
      gpu.barrier
      memref.store %v, %y[%b] : memref<3xf32>
      gpu.return
    }
    gpu.func @third(%x: memref<3xf32> {llvm.noalias, llvm.readonly}, %y: memref<2xf32>) workgroup(%s: memref<10xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2, 1, 1>, polyblocks.estimate = {bound = "main", bytes = {main = 8 : i64}, flops = 0 : i64, floor_bytes = 8 : i64, iterations = 2 : i64, moved_bytes = 8 : i64, predicted_seconds = 1.0e-6 : f64, seconds = {main = 1.0e-6 : f64}}, polyblocks.kind = "pointwise", polyblocks.resident = 1 : i32, polyblocks.sources = ["c x.py:3"]} {
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<3xf32>
      memref.store %v, %s[%b] : memref<10xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      memref.store %v, %y[%b] : memref<2xf32>
      gpu.return
    }
  }
}
