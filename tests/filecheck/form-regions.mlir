// PASSES: form-regions
//
// A loop with constant bounds is an affine loop; offsets that are affine in its variable are seen,
// also through choices with one outcome.

// CHECK-DAG:   #[[MAP:.*]] = affine_map<(d0) -> (d0 * 2 + 1)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 4 {
// CHECK:           arith.minsi
// CHECK:           %[[A:.*]] = affine.apply #[[MAP]](%[[I]])
// CHECK:           memref.subview %{{.*}}[%[[A]], 0] [1, 64] [1, 1]
// CHECK-NOT:       memref.copy
// CHECK:         } {polyblocks.region = 
// CHECK:         scf.if
// CHECK:         } {polyblocks.region = 
func.func @main(%x: memref<10x64xf32>, %p: i1, %z: f32) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %low = arith.constant 0 : i32
  %high = arith.constant 9 : i32
  scf.for %i = %c1 to %c9 step %c2 {
    %k = arith.index_cast %i : index to i32
    %negative = arith.cmpi slt, %k, %low : i32
    %end = arith.addi %k, %high : i32
    %chosen = arith.select %negative, %end, %k : i32
    %l = arith.maxsi %chosen, %low : i32
    %m = arith.minsi %l, %high : i32
    %o = arith.index_cast %m : i32 to index
    %row = memref.subview %x[%o, 0] [1, 64] [1, 1] : memref<10x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    linalg.fill ins(%z : f32) outs(%row : memref<64xf32, strided<[1], offset: ?>>)
    memref.copy %row, %row : memref<64xf32, strided<[1], offset: ?>> to memref<64xf32, strided<[1], offset: ?>>
  }
  scf.if %p {
    linalg.fill ins(%z : f32) outs(%x : memref<10x64xf32>)
  }
  return
}
