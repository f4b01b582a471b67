// PASSES: extract-launches
//
// @main is executed: its loop is two launches, views of the workspace are offsets, a constant moves
// into the kernel that reads it, numbers are passed by value, and what nobody launches is gone.

// CHECK:       polyblocks.arguments =
// CHECK-SAME:  polyblocks.launches = [
// CHECK-SAME:    {arguments = [{argument = 0 : i64}, {workspace = 64 : i64}, {dtype = "int64", value = 0 : i64}]
// CHECK-SAME:     block = [32, 1, 1], grid = [2, 1, 1], kernel = "scale"}
// CHECK-SAME:    {arguments = [{argument = 0 : i64}, {workspace = 192 : i64}, {dtype = "int64", value = 1 : i64}]
// CHECK-SAME:    {arguments = [{workspace = 64 : i64}, {argument = 1 : i64}]
// CHECK-SAME:     block = [32, 1, 1], grid = [1, 1, 1], kernel = "copy"}
// CHECK-NOT:   memref.global
// CHECK:       gpu.module @kernels
// CHECK:         memref.global "private" constant @table
// CHECK:         gpu.func @scale(%[[X:.*]]: memref<32xf32>, %[[Y:.*]]: memref<32xf32>, %[[K:.*]]: index) kernel
// CHECK-SAME:      known_grid_size = array<i32: 2, 1, 1>
// CHECK:           memref.get_global @table
// CHECK:         gpu.func @copy
// CHECK-NOT:     gpu.func
// CHECK-NOT:   func.func
module attributes {gpu.container_module} {
  memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
  gpu.module @kernels {
    gpu.func @scale(%x: memref<32xf32>, %t: memref<2xf32>, %y: memref<32xf32>, %k: index) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>} {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<32xf32>
      %f = memref.load %t[%k] : memref<2xf32>
      %r = arith.mulf %v, %f : f32
      memref.store %r, %y[%i] : memref<32xf32>
      gpu.return
    }
    gpu.func @copy(%x: memref<32xf32>, %y: memref<32xf32>) kernel {
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<32xf32>
      memref.store %v, %y[%i] : memref<32xf32>
      gpu.return
    }
    gpu.func @nobody(%x: memref<32xf32>) kernel {
      gpu.return
    }
  }
  func.func @main(
      %x: memref<32xf32> {polyblocks.arg = {role = "input", name = "x", dtype = "float32",
        shape = array<i64: 32>, strides = array<i64: 1>, constant = false, updates = -1 : i64}},
      %y: memref<32xf32> {polyblocks.arg = {role = "output", name = "y", dtype = "float32",
        shape = array<i64: 32>, strides = array<i64: 1>, constant = false, updates = -1 : i64}},
      %ws: memref<512xi8> {polyblocks.arg = {role = "workspace", name = "workspace", dtype = "int8",
        shape = array<i64: 512>, strides = array<i64: 1>, constant = false, updates = -1 : i64}}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %t = memref.get_global @table : memref<2xf32>
    scf.for %k = %c0 to %c2 step %c1 {
      %shift = affine.apply affine_map<(d0) -> (d0 * 128 + 64)>(%k)
      %to = memref.view %ws[%shift][] : memref<512xi8> to memref<32xf32>
      gpu.launch_func @kernels::@scale blocks in (%c2, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%x : memref<32xf32>, %t : memref<2xf32>, %to : memref<32xf32>, %k : index)
    }
    %from = memref.view %ws[%c64][] : memref<512xi8> to memref<32xf32>
    gpu.launch_func @kernels::@copy blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%from : memref<32xf32>, %y : memref<32xf32>)
    return
  }
}
