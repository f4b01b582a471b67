// PASSES: lower-checks
//
// What follows a check runs only where it holds, but all threads come to the barrier, and store what
// others of their block read. A check that is known to hold leaves nothing; a kernel without checks
// stays as it is.

// CHECK:       polyblocks.checks = ["index out of range"]
// CHECK-SAME:  {argument = 0 : i64}, {argument = 1 : i64}, {argument = 2 : i64}
// CHECK-LABEL: gpu.func @gather
// CHECK-SAME:  (%[[I:.*]]: memref<64xindex>, %[[X:.*]]: memref<64xf32>, %[[S:.*]]: memref<1xi32>) workgroup(%[[W:.*]] : memref<64xf32
// CHECK:         %[[OK:.*]] = arith.cmpi ult
// CHECK:         %[[V:.*]] = scf.if %[[OK]]
// CHECK:           memref.load %[[X]]
// CHECK:         } else {
// CHECK:           %[[CODE:.*]] = arith.constant 1 : i32
// CHECK:           memref.atomic_rmw maxu %[[CODE]], %[[S]]
// CHECK:         }
// CHECK-NEXT:    memref.store %[[V]], %[[W]]
// CHECK-NEXT:    gpu.barrier
// CHECK:         scf.if %[[OK]] {
// CHECK:           memref.load %[[W]]
// CHECK:         }
// CHECK-NEXT:    gpu.return
// CHECK-LABEL: gpu.func @plain
// CHECK-SAME:  (%{{.*}}: memref<64xf32>) kernel
// CHECK-NOT:     scf.if
module attributes {gpu.container_module,
    polyblocks.arguments = [
      {role = "input", name = "i", dtype = "int64", shape = array<i64: 64>,
       strides = array<i64: 1>, constant = false, updates = -1 : i64},
      {role = "input", name = "x", dtype = "float32", shape = array<i64: 64>,
       strides = array<i64: 1>, constant = false, updates = -1 : i64}],
    polyblocks.launches = [
      {kernel = "gather", grid = [1, 1, 1], block = [64, 1, 1],
       arguments = [{argument = 0 : i64}, {argument = 1 : i64}]},
      {kernel = "plain", grid = [1, 1, 1], block = [64, 1, 1],
       arguments = [{argument = 1 : i64}]}]} {
  gpu.module @kernels {
    gpu.func @gather(%i: memref<64xindex>, %x: memref<64xf32>)
        workgroup(%w : memref<64xf32, #gpu.address_space<workgroup>>) kernel {
      %true = arith.constant true
      %c64 = arith.constant 64 : index
      %c63 = arith.constant 63 : index
      %t = gpu.thread_id x
      %at = memref.load %i[%t] : memref<64xindex>
      cf.assert %true, "never fails"
      %ok = arith.cmpi ult, %at, %c64 : index
      cf.assert %ok, "index out of range"
      %v = memref.load %x[%at] : memref<64xf32>
      memref.store %v, %w[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      cf.assert %ok, "checked already"
      %r = arith.subi %c63, %t : index
      %u = memref.load %w[%r] : memref<64xf32, #gpu.address_space<workgroup>>
      memref.store %u, %x[%t] : memref<64xf32>
      gpu.return
    }
    gpu.func @plain(%x: memref<64xf32>) kernel {
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<64xf32>
      memref.store %v, %x[%t] : memref<64xf32>
      gpu.return
    }
  }
}
