// PASSES: lower-asserts
//
// What follows a check runs only when it holds; values that leave the block become zero otherwise.

// CHECK:       module attributes {polyblocks.checks = ["second", "index out of range"]}
// CHECK-LABEL: func.func @main
// CHECK-SAME:  -> i32
// CHECK:         %[[S:.*]] = memref.alloca() : memref<1xi32>
// CHECK:         memref.store %{{.*}}, %[[S]]
// CHECK:         %[[SUM:.*]] = affine.for
// CHECK:           %[[OK:.*]] = arith.cmpi slt
// CHECK:           %[[R:.*]] = scf.if %[[OK]] -> (f32) {
// CHECK:             memref.load
// CHECK:             %[[A:.*]] = arith.addf
// CHECK:             scf.yield %[[A]]
// CHECK:           } else {
// CHECK:             %[[CODE:.*]] = arith.constant 2 : i32
// CHECK:             memref.store %[[CODE]], %[[S]]
// CHECK:             %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:             scf.yield %[[Z]]
// CHECK:           affine.yield %[[R]]
// CHECK-NOT:     cf.assert
// CHECK:         cf.cond_br %{{.*}}, ^[[REST:.*]], ^[[FAILED:.*]]
// CHECK:       ^[[REST]]:
// CHECK-NEXT:    affine.store %[[SUM]]
// CHECK:         affine.for %{{.*}} = 0 to %{{.*}} {
// CHECK:         cf.br ^[[END:.*]]
// CHECK:       ^[[FAILED]]:
// CHECK:         memref.store %{{.*}}, %[[S]]
// CHECK:         cf.br ^[[END]]
// CHECK:       ^[[END]]:
// CHECK:         %[[RESULT:.*]] = memref.load %[[S]]
// CHECK:         return %[[RESULT]] : i32
func.func @main(%i: memref<8xindex>, %x: memref<64xf32>, %y: memref<f32>, %p: memref<i1>) {
  %zero = arith.constant 0.0 : f32
  %c64 = arith.constant 64 : index
  %sum = affine.for %k = 0 to 8 iter_args(%acc = %zero) -> (f32) {
    %at = affine.load %i[%k] : memref<8xindex>
    %ok = arith.cmpi slt, %at, %c64 : index
    cf.assert %ok, "index out of range"
    %v = memref.load %x[%at] : memref<64xf32>
    %a = arith.addf %acc, %v : f32
    affine.yield %a : f32
  }
  %q = affine.load %p[] : memref<i1>
  cf.assert %q, "second"
  cf.assert %q, "checked already"
  %true = arith.constant true
  cf.assert %true, "never fails"
  affine.store %sum, %y[] : memref<f32>
  %n = affine.load %i[0] : memref<8xindex>
  affine.for %k = 0 to %n {
    affine.store %sum, %y[] : memref<f32>
  }
  return
}
