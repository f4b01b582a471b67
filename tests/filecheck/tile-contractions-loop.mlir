// PASSES: plan-contractions,tile-contractions,expand-packing
// ARCH: x86-64-v3
//
// No iteration of the loop changes %w: its panels are filled in front of it. The rows are what the
// loop carries; they are read where they are.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[W:[a-z0-9]+]]: memref<250x64xf32>, %[[H:[a-z0-9]+]]: memref<60x64xf32>
// CHECK:         %[[OTHERS:.*]] = memref.alloc() : memref<4x64x16xf32>
// CHECK:         %[[PANELS:.*]] = memref.alloc() : memref<16x64x16xf32>
// CHECK:         affine.for %[[P:.*]] = 0 to 15 {
// CHECK-NEXT:      affine.for %[[K:.*]] = 0 to 64 {
// CHECK-NEXT:        affine.for %[[L:.*]] = 0 to 16 {
// CHECK-NEXT:          affine.load %[[W]][%[[P]] * 16 + %[[L]], %[[K]]]
// CHECK-NEXT:          affine.store %{{.*}}, %[[PANELS]][%[[P]], %[[K]], %[[L]]]
// CHECK:         affine.for %{{.*}} = 0 to 10 {
// CHECK:           affine.store %{{.*}}, %[[PANELS]][15,
// CHECK:         affine.for %{{.*}} = 0 to 1000 {
// CHECK-NOT:       affine.load %[[W]]
// CHECK:           affine.load %[[PANELS]][
// CHECK:           {polyblocks.lanes = 16 : i64}
// CHECK-NOT:       affine.load %[[W]]
// CHECK:         } {polyblocks.region = "loop1"}
//
// The second loop does not change %h. The other operand differs by iteration: it is read in place.
//
// CHECK:         affine.load %[[H]][
// CHECK:         affine.store %{{.*}}, %[[OTHERS]][
// CHECK:         affine.for %[[T:.*]] = 0 to 400 {
// CHECK-NOT:       affine.load %[[H]][
// CHECK:           affine.load %[[OTHERS]][
// CHECK:           affine.load %{{.*}}[{{.*}}%[[T]] * 16000
// CHECK:         } {polyblocks.region = "loop2"}

module {
  func.func @main(%w: memref<250x64xf32>, %h: memref<60x64xf32>, %y: memref<60x250xf32>,
                  %ws: memref<400x250x64xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %t = 0 to 1000 {
      affine.for %i = 0 to 60 {
        affine.for %j = 0 to 250 {
          %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (f32) {
            %x = affine.load %h[%i, %k] : memref<60x64xf32>
            %v = affine.load %w[%j, %k] : memref<250x64xf32>
            %p = arith.mulf %x, %v fastmath<reassoc,contract> : f32
            %q = arith.addf %s, %p fastmath<reassoc,contract> : f32
            affine.yield %q : f32
          }
          affine.store %r, %y[%i, %j] : memref<60x250xf32>
        }
      }
      affine.for %i = 0 to 60 {
        affine.for %k = 0 to 64 {
          %x = affine.load %y[%i, %k] : memref<60x250xf32>
          affine.store %x, %h[%i, %k] : memref<60x64xf32>
        }
      }
    } {polyblocks.region = "loop1"}
    affine.for %t = 0 to 400 {
      affine.for %i = 0 to 60 {
        affine.for %j = 0 to 250 {
          %r = affine.for %k = 0 to 64 iter_args(%s = %z) -> (f32) {
            %x = affine.load %h[%i, %k] : memref<60x64xf32>
            %v = affine.load %ws[%t, %j, %k] : memref<400x250x64xf32>
            %p = arith.mulf %x, %v fastmath<reassoc,contract> : f32
            %q = arith.addf %s, %p fastmath<reassoc,contract> : f32
            affine.yield %q : f32
          }
          affine.store %r, %y[%i, %j] : memref<60x250xf32>
        }
      }
    } {polyblocks.region = "loop2"}
    return
  }
}
