// PASSES: lower-minima
//
// Minima stay where a row may have no other score: its first places see none, or an array that is
// added may hide what is left. They stay as well where the largest score of rows is not what is
// subtracted.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: arith.constant -3.40282347E+38 : f32
// CHECK:         return
func.func @main(%q: memref<64x8xf32>, %k: memref<64x8xf32>, %bias: memref<64x64xf32>, %late: memref<64xf32>, %biased: memref<64xf32>, %plain: memref<64x64xf32>) {
  %s = memref.alloc() : memref<64x64xf32>
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %zero = arith.constant 0.0 : f32
      %0 = affine.for %d = 0 to 8 iter_args(%sum = %zero) -> (f32) {
        %x = affine.load %q[%i, %d] : memref<64x8xf32>
        %y = affine.load %k[%j, %d] : memref<64x8xf32>
        %xy = arith.mulf %x, %y : f32
        %a = arith.addf %sum, %xy : f32
        affine.yield %a : f32
      }
      affine.store %0, %s[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    %none = arith.constant 0xFF800000 : f32
    %0 = affine.for %j = 0 to 64 iter_args(%most = %none) -> (f32) {
      %in = arith.cmpi sgt, %i, %j : index
      %x = affine.load %s[%i, %j] : memref<64x64xf32>
      %low = arith.constant -3.40282347E+38 : f32
      %y = arith.select %in, %x, %low : f32
      %z = arith.maximumf %most, %y : f32
      affine.yield %z : f32
    }
    affine.store %0, %late[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    %none = arith.constant 0xFF800000 : f32
    %0 = affine.for %j = 0 to 64 iter_args(%most = %none) -> (f32) {
      %in = arith.cmpi sge, %i, %j : index
      %x = affine.load %s[%i, %j] : memref<64x64xf32>
      %b = affine.load %bias[%i, %j] : memref<64x64xf32>
      %xb = arith.addf %x, %b : f32
      %low = arith.constant -3.40282347E+38 : f32
      %y = arith.select %in, %xb, %low : f32
      %z = arith.maximumf %most, %y : f32
      affine.yield %z : f32
    }
    affine.store %0, %biased[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %in = arith.cmpi sge, %i, %j : index
      %x = affine.load %s[%i, %j] : memref<64x64xf32>
      %low = arith.constant -3.40282347E+38 : f32
      %y = arith.select %in, %x, %low : f32
      %most = affine.load %bias[%i, 0] : memref<64x64xf32>
      %d = arith.subf %y, %most : f32
      %e = math.exp %d : f32
      affine.store %e, %plain[%i, %j] : memref<64x64xf32>
    }
  }
  return
}
