// PASSES: lower-minima
//
// Scores that a condition of places replaces by the least number become minus infinity, where each
// row keeps a sum of products and all that is done with them is to take exponentials of differences
// to the largest one. A mask that is added says it by arithmetic on zeros and ones.

// CHECK-LABEL: func.func @main
// The largest score of a row.
// CHECK:         arith.cmpi sge
// CHECK:         %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NEXT:    arith.select %{{.*}}, %{{.*}}, %[[LOW]] : f32
// CHECK:         arith.maximumf
// The exponentials.
// CHECK:         %[[AGAIN:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NEXT:    arith.select %{{.*}}, %{{.*}}, %[[AGAIN]] : f32
// CHECK:         math.exp
// The mask that is added.
// CHECK:         %[[IN:.*]] = arith.cmpi sge
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant {{-?}}0.000000e+00 : f32
// CHECK-DAG:     %[[ADDED:.*]] = arith.constant 0xFF800000 : f32
// CHECK:         %[[MASK:.*]] = arith.select %[[IN]], %[[ZERO]], %[[ADDED]] : f32
// CHECK:         arith.addf %{{.*}}, %[[MASK]]
func.func @main(%q: memref<64x8xf32>, %k: memref<64x8xf32>, %out: memref<64x64xf32>, %more: memref<64x64xf32>) {
  %s = memref.alloc() : memref<64x64xf32>
  %m = memref.alloc() : memref<64xf32>
  %n = memref.alloc() : memref<64xf32>
  %t = memref.alloc() : memref<64x64xf32>
  %keep = memref.alloc() : memref<64x64xf32>
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
      %in = arith.cmpi sge, %i, %j : index
      %x = affine.load %s[%i, %j] : memref<64x64xf32>
      %low = arith.constant -3.40282347E+38 : f32
      %y = arith.select %in, %x, %low : f32
      %z = arith.maximumf %most, %y : f32
      affine.yield %z : f32
    }
    affine.store %0, %m[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %in = arith.cmpi sge, %i, %j : index
      %x = affine.load %s[%i, %j] : memref<64x64xf32>
      %low = arith.constant -3.40282347E+38 : f32
      %y = arith.select %in, %x, %low : f32
      %most = affine.load %m[%i] : memref<64xf32>
      %d = arith.subf %y, %most : f32
      %e = math.exp %d : f32
      affine.store %e, %out[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %in = arith.cmpi sge, %i, %j : index
      %x = arith.uitofp %in : i1 to f32
      affine.store %x, %keep[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %one = arith.constant 1.0 : f32
      %x = affine.load %keep[%i, %j] : memref<64x64xf32>
      %y = arith.subf %one, %x : f32
      %low = arith.constant -1.0e9 : f32
      %z = arith.mulf %y, %low : f32
      affine.store %z, %t[%i, %j] : memref<64x64xf32>
    }
  }
  %u = memref.alloc() : memref<64x64xf32>
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %s[%i, %j] : memref<64x64xf32>
      %y = affine.load %t[%i, %j] : memref<64x64xf32>
      %z = arith.addf %x, %y : f32
      affine.store %z, %u[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    %none = arith.constant 0xFF800000 : f32
    %0 = affine.for %j = 0 to 64 iter_args(%most = %none) -> (f32) {
      %x = affine.load %u[%i, %j] : memref<64x64xf32>
      %z = arith.maximumf %most, %x : f32
      affine.yield %z : f32
    }
    affine.store %0, %n[%i] : memref<64xf32>
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %x = affine.load %u[%i, %j] : memref<64x64xf32>
      %most = affine.load %n[%i] : memref<64xf32>
      %d = arith.subf %x, %most : f32
      %e = math.exp %d : f32
      affine.store %e, %more[%i, %j] : memref<64x64xf32>
    }
  }
  return
}
