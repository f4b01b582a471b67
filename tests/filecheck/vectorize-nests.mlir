// PASSES: vectorize-nests
//
// A loop in order becomes vectors and a rest, under a mask if that is no power of two. A loop that threads share is cut into blocks
// first. A sum is carried in several vectors; a maximum starts with the same value in all lanes. A
// recurrence, a load far apart and a short loop stay as they are.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[ROW:.*]] = 0 to 8 {
// CHECK:           scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK:             %[[X:.*]] = vector.load %{{.*}}[%[[ROW]], %[[I]]] : memref<8x1000xf32>, vector<16xf32>
// CHECK:             %[[Y:.*]] = arith.addf %[[X]], %{{.*}} fastmath<reassoc> : vector<16xf32>
// CHECK:             vector.store %[[Y]], %{{.*}}[%[[ROW]], %[[I]]]
// CHECK:           vector.load {{.*}} : memref<8x1000xf32>, vector<8xf32>
// CHECK:           vector.store {{.*}} : memref<8x1000xf32>, vector<8xf32>
// CHECK:         polyblocks.vector = array<i64: 16>
//
// CHECK:         affine.parallel (%[[BLOCK:.*]]) = (0) to (32) {
// CHECK:           arith.minsi
// CHECK:           scf.for
// CHECK:             vector.load {{.*}} vector<8xi64>
// CHECK:           scf.if
// CHECK:             vector.maskedload {{.*}} vector<8xi64>
// CHECK:             vector.maskedstore {{.*}} vector<8xi64>
//
// CHECK:         affine.for
// CHECK:           vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK:           %{{.*}}:8 = scf.for {{.*}} iter_args
// CHECK-COUNT-4:  vector.load
// CHECK:             scf.yield
// CHECK:           vector.maskedload
// CHECK:           arith.select
// CHECK:           vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK:           vector.extract
//
// CHECK:         affine.for %{{.*}} = 0 to 1000 iter_args
// CHECK-NEXT:      affine.load
// CHECK:         affine.for %{{.*}} = 0 to 200 {
// CHECK-NEXT:      affine.load
// CHECK:         affine.for %{{.*}} = 0 to 3 {
// CHECK-NEXT:      affine.load
func.func @main(%a: memref<8x1000xf32>, %b: memref<8x1000xf32>, %n: memref<100001xi64>, %s: memref<8xf32>, %t: memref<8xf32>, %c: memref<200xf32>) {
  %two = arith.constant 2.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 1000 {
      %x = affine.load %a[%i, %j] : memref<8x1000xf32>
      %y = arith.addf %x, %two fastmath<reassoc> : f32
      affine.store %y, %b[%i, %j] : memref<8x1000xf32>
    }
  } {polyblocks.kernel = "rows", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.parallel (%t0) = (0) to (100001) {
    %x = affine.load %n[%t0] : memref<100001xi64>
    %y = arith.addi %x, %x : i64
    affine.store %y, %n[%t0] : memref<100001xi64>
  } {polyblocks.kernel = "flat", polyblocks.kind = "pointwise", polyblocks.level = "team", polyblocks.sources = []}
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %r:2 = affine.for %j = 0 to 1000 iter_args(%p = %zero, %q = %low) -> (f32, f32) {
      %x = affine.load %a[%i, %j] : memref<8x1000xf32>
      %u = arith.addf %p, %x fastmath<reassoc> : f32
      %v = arith.maximumf %q, %x : f32
      affine.yield %u, %v : f32, f32
    }
    affine.store %r#0, %s[%i] : memref<8xf32>
    affine.store %r#1, %t[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %r = affine.for %j = 0 to 1000 iter_args(%p = %zero) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<8x1000xf32>
      %u = arith.subf %x, %p fastmath<reassoc> : f32
      affine.store %u, %b[%i, %j] : memref<8x1000xf32>
      affine.yield %u : f32
    }
    affine.store %r, %s[%i] : memref<8xf32>
  }
  affine.for %j = 0 to 200 {
    %x = affine.load %a[0, %j * 5] : memref<8x1000xf32>
    affine.store %x, %c[%j] : memref<200xf32>
  }
  affine.for %j = 0 to 3 {
    %x = affine.load %a[0, %j] : memref<8x1000xf32>
    affine.store %x, %c[%j] : memref<200xf32>
  }
  return
}
