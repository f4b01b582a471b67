// PASSES: lower-checks
//
// A loop with a barrier behind a check is run by all threads, and what is in it between barriers by
// those whose check holds. A while loop ends when a check has failed. The program's status word is
// used if it has one.

// CHECK:       polyblocks.checks = ["second", "first"]
// CHECK-SAME:  polyblocks.launches = [{arguments = [{argument = 1 : i64}, {argument = 0 : i64}]
// CHECK-LABEL: gpu.func @k
// CHECK-SAME:  (%[[X:.*]]: memref<64xf32>, %[[S:.*]]: memref<1xi32>)
// CHECK:         %[[OK:.*]] = arith.cmpf
// CHECK:         scf.if %[[OK]] {
// CHECK-NEXT:    } else {
// CHECK:           memref.atomic_rmw maxu %{{.*}}, %[[S]]
// CHECK:         scf.for
// CHECK:           %[[L:.*]] = scf.if %[[OK]] -> (f32) {
// CHECK:             memref.load %[[X]]
// CHECK:           } else {
// CHECK:             %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:             scf.yield %[[Z]]
// CHECK:           gpu.barrier
// CHECK:           scf.if %[[OK]] {
// CHECK:             memref.store %[[L]], %[[X]]
// CHECK:         scf.if %[[OK]] {
// CHECK:           scf.while
// CHECK:             %[[SEEN:.*]] = memref.atomic_rmw maxu %{{.*}}, %[[S]]
// CHECK:             %[[NONE:.*]] = arith.cmpi eq, %[[SEEN]]
// CHECK:             %[[MORE:.*]] = arith.andi %{{.*}}, %[[NONE]] : i1
// CHECK:             scf.condition(%[[MORE]])
// CHECK:             scf.if
// CHECK:             } else {
// CHECK:               %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:               memref.atomic_rmw maxu %[[ONE]], %[[S]]
// CHECK-NOT:     cf.assert
module attributes {gpu.container_module,
    polyblocks.arguments = [
      {role = "status", name = "status", dtype = "int32", shape = array<i64: 1>,
       strides = array<i64: 1>, constant = false, updates = -1 : i64},
      {role = "input", name = "x", dtype = "float32", shape = array<i64: 64>,
       strides = array<i64: 1>, constant = false, updates = -1 : i64}],
    polyblocks.launches = [
      {kernel = "k", grid = [1, 1, 1], block = [64, 1, 1],
       arguments = [{argument = 1 : i64}]}]} {
  gpu.module @kernels {
    gpu.func @k(%x: memref<64xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c63 = arith.constant 63 : index
      %zero = arith.constant 0.0 : f32
      %t = gpu.thread_id x
      %r = arith.subi %c63, %t : index
      %v = memref.load %x[%t] : memref<64xf32>
      %ok = arith.cmpf ogt, %v, %zero : f32
      cf.assert %ok, "first"
      scf.for %i = %c0 to %c4 step %c1 {
        %l = memref.load %x[%r] : memref<64xf32>
        gpu.barrier
        memref.store %l, %x[%t] : memref<64xf32>
      }
      %e = scf.while (%a = %v) : (f32) -> f32 {
        %more = arith.cmpf olt, %a, %zero : f32
        scf.condition(%more) %a : f32
      } do {
      ^bb0(%a: f32):
        %fine = arith.cmpf one, %a, %zero : f32
        cf.assert %fine, "second"
        %b = arith.divf %v, %a : f32
        scf.yield %b : f32
      }
      memref.store %e, %x[%t] : memref<64xf32>
      gpu.return
    }
  }
}
