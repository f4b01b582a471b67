// PASSES: merge-kernels
//
// The second kernel is the first one under another name; the third one differs and stays
// as it is.

// CHECK:       polyblocks.launches = [
// CHECK-SAME:    {arguments = [{argument = 0 : i64}], block = [4, 1, 1], grid = [1, 1, 1], kernel = "k"}
// CHECK-SAME:    {arguments = [{argument = 1 : i64}], block = [4, 1, 1], grid = [1, 1, 1], kernel = "k"}
// CHECK-SAME:    kernel = "other"
// CHECK:       gpu.func @k(
// CHECK-SAME:    polyblocks.estimates = [{flops = 4 : i64}, {flops = 8 : i64}]
// CHECK-SAME:    polyblocks.nests = ["k", "k_1"]
// CHECK-SAME:    polyblocks.sources = ["a x.py:1", "b x.py:2"]
// CHECK-NOT:   @k_1
// CHECK:       gpu.func @other(
// CHECK-SAME:    polyblocks.estimate = {flops = 2 : i64}
// CHECK-NOT:     polyblocks.nests
module attributes {gpu.container_module, polyblocks.launches = [
    {arguments = [{argument = 0 : i64}], block = [4, 1, 1], grid = [1, 1, 1], kernel = "k"},
    {arguments = [{argument = 1 : i64}], block = [4, 1, 1], grid = [1, 1, 1], kernel = "k_1"},
    {arguments = [{argument = 1 : i64}], block = [4, 1, 1], grid = [1, 1, 1], kernel = "other"}]} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<4xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, polyblocks.sources = ["a x.py:1"], polyblocks.estimate = {flops = 4 : i64}} {
      %t = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      memref.store %one, %x[%t] : memref<4xf32>
      gpu.return
    }
    gpu.func @k_1(%y: memref<4xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, polyblocks.sources = ["b x.py:2"], polyblocks.estimate = {flops = 8 : i64}} {
      %t = gpu.thread_id x
      %one = arith.constant 1.0 : f32
      memref.store %one, %y[%t] : memref<4xf32>
      gpu.return
    }
    gpu.func @other(%x: memref<4xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>, polyblocks.sources = ["c x.py:3"], polyblocks.estimate = {flops = 2 : i64}} {
      %t = gpu.thread_id x
      %two = arith.constant 2.0 : f32
      memref.store %two, %x[%t] : memref<4xf32>
      gpu.return
    }
  }
}
