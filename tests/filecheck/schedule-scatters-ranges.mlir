// PASSES: schedule-scatters,vectorize-nests
//
// Updates that overwrite, at any of 4M places: each of eight threads looks at all of them, lists those
// in its range of the places in vectors, and stores a list when another vector has no room in it.

// CHECK-LABEL: @main
// CHECK:         affine.parallel (%[[T:.*]]) = (0) to (8) {
// CHECK:           %[[BEGIN:.*]] = affine.apply #{{.*}}(%[[T]])
// CHECK:           %[[PLACES:.*]] = memref.alloca() {{.*}} : memref<528xi32>
// CHECK:           %[[VALUES:.*]] = memref.alloca() {{.*}} : memref<528xi32>
// CHECK:           scf.for {{.*}} iter_args(%[[N:.*]] = %{{.*}}) -> (index) {
// CHECK:             memref.prefetch %arg0[%{{.*}}], read, locality<0>
// CHECK:             %[[OFFSET:.*]] = arith.subi
// CHECK:             %[[MINE:.*]] = arith.cmpi ult, %[[OFFSET]]
// CHECK:             %[[P:.*]] = llvm.call_intrinsic "llvm.experimental.vector.compress"
// CHECK:             vector.store %[[P]], %[[PLACES]][%[[N]]]
// CHECK:             %[[V:.*]] = llvm.call_intrinsic "llvm.experimental.vector.compress"
// CHECK:             vector.store %[[V]], %[[VALUES]][%[[N]]]
// CHECK:             math.ctpop
// CHECK:             scf.if
// CHECK:               scf.for
// CHECK:                 memref.store %{{.*}}, %arg2
// CHECK:               scf.yield
//
// The last updates under a mask, and what is listed still.
//
// CHECK:           vector.maskedload %arg0
// CHECK:           arith.andi
// CHECK:           llvm.call_intrinsic
// CHECK:           scf.for
// CHECK:             memref.store %{{.*}}, %arg2
// CHECK:         polyblocks.level = "team"
//
// Few updates, those that look at what is there, and those at two places are made by one thread.
//
// CHECK-NOT:     affine.parallel
// CHECK-NOT:     llvm.call_intrinsic
// CHECK:         return
func.func @main(%updates: memref<4194301xf32>, %places: memref<4194301xi64>, %x: memref<4194304xf32>,
                %square: memref<2048x2048xf32>) {
  affine.for %i = 0 to 4194301 {
    %u = affine.load %updates[%i] : memref<4194301xf32>
    %p = affine.load %places[%i] : memref<4194301xi64>
    %q = arith.index_cast %p : i64 to index
    %n = arith.constant 4194304 : index
    %ok = arith.cmpi ult, %q, %n : index
    cf.assert %ok, "index out of range"
    memref.store %u, %x[%q] : memref<4194304xf32>
  }
  affine.for %i = 0 to 100 {
    %u = affine.load %updates[%i] : memref<4194301xf32>
    %p = affine.load %places[%i] : memref<4194301xi64>
    %q = arith.index_cast %p : i64 to index
    memref.store %u, %x[%q] : memref<4194304xf32>
  }
  affine.for %i = 0 to 4194301 {
    %u = affine.load %updates[%i] : memref<4194301xf32>
    %p = affine.load %places[%i] : memref<4194301xi64>
    %q = arith.index_cast %p : i64 to index
    %old = memref.load %x[%q] : memref<4194304xf32>
    %new = arith.subf %old, %u : f32
    memref.store %new, %x[%q] : memref<4194304xf32>
  }
  affine.for %i = 0 to 4194301 {
    %u = affine.load %updates[%i] : memref<4194301xf32>
    %p = affine.load %places[%i] : memref<4194301xi64>
    %q = arith.index_cast %p : i64 to index
    memref.store %u, %square[%q, %q] : memref<2048x2048xf32>
  }
  return
}
