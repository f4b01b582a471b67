// PASSES: fuse-slices
//
// What the consumer needs besides, a factor for each row and a border around its results, is made
// before the sums; then it is their epilogue. In the second pair what it needs is made of the
// sums: both stay.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[F:.*]] = 0 to 6 {
// CHECK:           %[[ROOT:.*]] = math.sqrt
// CHECK:           affine.store %[[ROOT]], %[[FACTORS:.*]][%[[F]]]
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %[[OUT:.*]][%{{.*}}, %{{.*}}] : memref<8x20xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 6 {
// CHECK:           affine.for %[[J:.*]] = 0 to 20 {
// CHECK:             %[[SUM:.*]] = affine.for
// CHECK:             %[[FACTOR:.*]] = affine.load %[[FACTORS]][%[[I]]]
// CHECK:             %[[SCALED:.*]] = arith.mulf %[[SUM]], %[[FACTOR]]
// CHECK:             affine.store %[[SCALED]], %[[OUT]][%[[I]] + 1, %[[J]]]
// CHECK:         affine.for %[[I:.*]] = 0 to 6 {
// CHECK:           %[[MOST:.*]] = affine.for
// CHECK:           affine.store %[[MOST]], %[[MAXIMA:.*]][%[[I]]]
// CHECK:         affine.for
// CHECK:           affine.load %[[MAXIMA]][5]
// CHECK:         affine.for
// CHECK:           affine.load %[[MAXIMA]]
// CHECK:           arith.mulf
func.func @main(%a: memref<6x20x9xf32>, %v: memref<6xf32>, %out: memref<8x20xf32>,
                %b: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  %sums = memref.alloc() : memref<6x20xf32>
  %factors = memref.alloc() : memref<6xf32>
  %maxima = memref.alloc() : memref<6xf32>
  %last = memref.alloc() : memref<1xf32>
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 20 {
      %s = affine.for %k = 0 to 9 iter_args(%c = %zero) -> f32 {
        %x = affine.load %a[%i, %j, %k] : memref<6x20x9xf32>
        %y = arith.addf %c, %x : f32
        affine.yield %y : f32
      }
      affine.store %s, %sums[%i, %j] : memref<6x20xf32>
    }
  }
  affine.for %i = 0 to 6 {
    %x = affine.load %v[%i] : memref<6xf32>
    %y = math.sqrt %x : f32
    affine.store %y, %factors[%i] : memref<6xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 20 {
      affine.store %zero, %out[%i, %j] : memref<8x20xf32>
    }
  }
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 20 {
      %x = affine.load %sums[%i, %j] : memref<6x20xf32>
      %y = affine.load %factors[%i] : memref<6xf32>
      %z = arith.mulf %x, %y : f32
      affine.store %z, %out[%i + 1, %j] : memref<8x20xf32>
    }
  }
  affine.for %i = 0 to 6 {
    %s = affine.for %k = 0 to 9 iter_args(%c = %zero) -> f32 {
      %x = affine.load %a[%i, 0, %k] : memref<6x20x9xf32>
      %y = arith.maximumf %c, %x : f32
      affine.yield %y : f32
    }
    affine.store %s, %maxima[%i] : memref<6xf32>
  }
  affine.for %i = 0 to 1 {
    %x = affine.load %maxima[5] : memref<6xf32>
    %y = math.sqrt %x : f32
    affine.store %y, %last[%i] : memref<1xf32>
  }
  affine.for %i = 0 to 6 {
    %x = affine.load %maxima[%i] : memref<6xf32>
    %y = affine.load %last[0] : memref<1xf32>
    %z = arith.mulf %x, %y : f32
    affine.store %z, %b[%i] : memref<6xf32>
  }
  return
}
