// PASSES: classify-nests,merge-reductions
//
// Weights that two sums read, one of them with something else, are computed inside of both, which
// are one loop; the buffer of the weights is gone. Weights that a sum reads
// backwards, or that are the program's result, stay in memory, where one loop reads them for both
// sums; and so do those that a nest without a sum reads, too.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc() : memref<16x81xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 16 {
// CHECK:           %[[R:.*]]:2 = affine.for %[[K:.*]] = 0 to 81 iter_args
// CHECK:             %[[X:.*]] = affine.load %arg0[%[[I]], %[[K]]]
// CHECK:             %[[W:.*]] = math.exp %[[X]]
// CHECK:             arith.addf %{{.*}}, %[[W]]
// CHECK:             arith.mulf %[[W]], %{{.*}}
// CHECK:           arith.divf %[[R]]#1, %{{.*}}
// CHECK:           affine.store %{{.*}}, %arg2[%[[I]]]
//
// CHECK-COUNT-2: affine.for %{{.*}} = 0 to 15 {
// CHECK-COUNT-2: affine.for %{{.*}} = 0 to 14 {
// CHECK-COUNT-3: affine.for %{{.*}} = 0 to 13 {
func.func @main(%a: memref<16x81xf32>, %b: memref<16x81xf32>, %c: memref<16xf32>,
                %d: memref<15x81xf32>, %e: memref<15xf32>, %f: memref<15xf32>,
                %g: memref<14x81xf32>, %h: memref<14x81xf32>, %k: memref<14xf32>,
                %l: memref<14xf32>, %m: memref<13x81xf32>, %n: memref<13x81xf32>,
                %o: memref<13xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = memref.alloc() : memref<16x81xf32>
  %s = memref.alloc() : memref<16xf32>
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 81 {
      %x = affine.load %a[%i, %j] : memref<16x81xf32>
      %y = math.exp %x : f32
      affine.store %y, %w[%i, %j] : memref<16x81xf32>
    }
  }
  affine.for %i = 0 to 16 {
    %r = affine.for %j = 0 to 81 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %w[%i, %j] : memref<16x81xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %s[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 16 {
    %r = affine.for %j = 0 to 81 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %w[%i, %j] : memref<16x81xf32>
      %y = affine.load %b[%i, %j] : memref<16x81xf32>
      %z = arith.mulf %x, %y fastmath<reassoc> : f32
      %u = arith.addf %t, %z fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    %p = affine.load %s[%i] : memref<16xf32>
    %q = arith.divf %r, %p : f32
    affine.store %q, %c[%i] : memref<16xf32>
  }

  // Backwards.
  %w1 = memref.alloc() : memref<15x81xf32>
  affine.for %i = 0 to 15 {
    affine.for %j = 0 to 81 {
      %x = affine.load %d[%i, %j] : memref<15x81xf32>
      %y = math.exp %x : f32
      affine.store %y, %w1[%i, %j] : memref<15x81xf32>
    }
  }
  affine.for %i = 0 to 15 {
    %r = affine.for %j = 0 to 81 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %w1[%i, %j] : memref<15x81xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %e[%i] : memref<15xf32>
  }
  affine.for %i = 0 to 15 {
    %r = affine.for %j = 0 to 81 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %w1[%i, 80 - %j] : memref<15x81xf32>
      %u = arith.maximumf %t, %x : f32
      affine.yield %u : f32
    }
    affine.store %r, %f[%i] : memref<15xf32>
  }

  // The weights are a result.
  affine.for %i = 0 to 14 {
    affine.for %j = 0 to 81 {
      %x = affine.load %g[%i, %j] : memref<14x81xf32>
      %y = math.exp %x : f32
      affine.store %y, %h[%i, %j] : memref<14x81xf32>
    }
  }
  affine.for %i = 0 to 14 {
    %r = affine.for %j = 0 to 81 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %h[%i, %j] : memref<14x81xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %k[%i] : memref<14xf32>
  }
  affine.for %i = 0 to 14 {
    %r = affine.for %j = 0 to 81 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %h[%i, %j] : memref<14x81xf32>
      %u = arith.maximumf %t, %x : f32
      affine.yield %u : f32
    }
    affine.store %r, %l[%i] : memref<14xf32>
  }

  // One of two reads is no sum.
  %w2 = memref.alloc() : memref<13x81xf32>
  affine.for %i = 0 to 13 {
    affine.for %j = 0 to 81 {
      %x = affine.load %m[%i, %j] : memref<13x81xf32>
      %y = math.exp %x : f32
      affine.store %y, %w2[%i, %j] : memref<13x81xf32>
    }
  }
  affine.for %i = 0 to 13 {
    %r = affine.for %j = 0 to 81 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %w2[%i, %j] : memref<13x81xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %r, %o[%i] : memref<13xf32>
  }
  affine.for %i = 0 to 13 {
    affine.for %j = 0 to 81 {
      %x = affine.load %w2[%i, %j] : memref<13x81xf32>
      %y = arith.negf %x : f32
      affine.store %y, %n[%i, %j] : memref<13x81xf32>
    }
  }
  return
}
