// PASSES: narrow-values
//
// Places that a mask compares, and their distance as a number, have 32 bits: vectors along %j hold
// twice as many. The comparison with the outer loop alone stays: it is scalar.

// CHECK-LABEL: func.func @main
// CHECK:         arith.cmpi sge, %{{.*}}, %{{.*}} : i32
// CHECK:         arith.subi %{{.*}}, %{{.*}} : i32
// CHECK:         arith.sitofp %{{.*}} : i32 to f32
// CHECK-LABEL: func.func @rows
// CHECK:         arith.cmpi sge, %{{.*}}, %{{.*}} : i64
func.func @main(%x: memref<64x1024xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %big = arith.constant 1.0e30 : f32
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 1024 {
      %a = arith.index_cast %i : index to i64
      %b = arith.index_cast %j : index to i64
      %m = arith.cmpi sge, %a, %b : i64
      %d = arith.subi %b, %a : i64
      %f = arith.sitofp %d : i64 to f32
      %v = affine.load %x[%i, %j] : memref<64x1024xf32>
      %c = arith.cmpf olt, %v, %big : f32
      %w = arith.select %c, %v, %low : f32
      %s = arith.addf %w, %f : f32
      %r = arith.select %m, %s, %low : f32
      affine.store %r, %x[%i, %j] : memref<64x1024xf32>
    }
  }
  return
}

func.func @rows(%x: memref<64x1024xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %big = arith.constant 1.0e30 : f32
  %few = arith.constant 7 : i64
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 1024 {
      %a = arith.index_cast %i : index to i64
      %m = arith.cmpi sge, %a, %few : i64
      %v = affine.load %x[%i, %j] : memref<64x1024xf32>
      %c = arith.cmpf olt, %v, %big : f32
      %w = arith.select %c, %v, %low : f32
      %r = arith.select %m, %w, %low : f32
      affine.store %r, %x[%i, %j] : memref<64x1024xf32>
    }
  }
  return
}
