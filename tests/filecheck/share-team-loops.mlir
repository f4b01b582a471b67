// PASSES: outline-kernels,share-team
//
// All threads run a loop of the program. What its condition loads they load behind a barrier, and
// none overwrites it before all have. What only the first thread has, and all need, goes through
// memory of @main's stack. A nest of one iteration is no work for several.

// CHECK-LABEL: func.func @main
// CHECK:         %[[SLOT:.*]] = memref.alloca() : memref<1xi32>
// CHECK:         call @main_team({{.*}}, %[[SLOT]], %{{.*}}, %{{.*}}) {polyblocks.each}
// CHECK-LABEL: func.func private @main_team
// CHECK-SAME:  (%[[X:.*]]: memref<64xf32>, %[[N:.*]]: memref<1xi32>, %[[SLOT:.*]]: memref<1xi32>, %{{.*}}: index, %[[THREADS:.*]]: index)
// CHECK:         scf.if %[[FIRST:.*]] {
// CHECK-NEXT:      %[[MADE:.*]] = func.call @count(%[[N]])
// CHECK:           memref.store %[[MADE]], %[[SLOT]]
// CHECK:         }
// CHECK:         call @wait_for_team(%[[THREADS]])
// CHECK-NEXT:    %[[START:.*]] = memref.load %[[SLOT]]
// CHECK:         scf.while (%{{.*}} = %[[START]])
// CHECK:           func.call @wait_for_team(%[[THREADS]])
// CHECK-NEXT:      %{{.*}} = memref.load %[[N]]
// CHECK:           scf.condition
// CHECK:         } do {
// CHECK:           func.call @double({{.*}}) {polyblocks.team}
// CHECK:           func.call @wait_for_team(%[[THREADS]])
// CHECK-NEXT:      scf.if %[[FIRST]] {
// CHECK:             memref.store %{{.*}}, %[[N]]
// CHECK:             func.call @single({{.*}}) : (
// CHECK-NEXT:      }
// CHECK:           scf.yield
func.func @main(%x: memref<64xf32>, %n: memref<1xi32>) {
  %lower = arith.constant 0 : index
  %one = arith.constant 1 : index
  %upper = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %unit = arith.constant 1 : i32
  %start = scf.for %i = %lower to %upper step %one iter_args(%s = %zero) -> (i32) {
    %v = affine.load %n[0] : memref<1xi32>
    %t = arith.addi %s, %v : i32
    scf.yield %t : i32
  } {polyblocks.region = "count"}
  %last = scf.while (%s = %start) : (i32) -> i32 {
    %k = affine.load %n[0] : memref<1xi32>
    %c = arith.cmpi sgt, %k, %s : i32
    scf.condition(%c) %s : i32
  } do {
  ^bb0(%s: i32):
    affine.parallel (%i) = (0) to (64) {
      %v = affine.load %x[%i] : memref<64xf32>
      %w = arith.addf %v, %v : f32
      affine.store %w, %x[%i] : memref<64xf32>
    } {polyblocks.kernel = "double", polyblocks.level = "team"}
    %k = affine.load %n[0] : memref<1xi32>
    %less = arith.subi %k, %unit : i32
    affine.store %less, %n[0] : memref<1xi32>
    affine.parallel (%i) = (0) to (1) {
      %v = affine.load %x[%i] : memref<64xf32>
      affine.store %v, %x[%i + 1] : memref<64xf32>
    } {polyblocks.kernel = "single", polyblocks.level = "team"}
    scf.yield %s : i32
  } attributes {polyblocks.region = "loop"}
  return
}
