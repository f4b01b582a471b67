// PASSES: split-columns
// ARCH: x86-64-v3
//
// Left as they are: differences whose rounding is the program's, and terms that depend on a row's
// sum, which no factor scales to another one.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: memref<256x32768xf32>
// CHECK-NOT:     memref<{{[0-9]+}}x256x{{[0-9]+}}xf32>
// CHECK:         return
func.func @main(%x: memref<256x64xf32>, %y: memref<32768x64xf32>, %out: memref<256xf32>, %out2: memref<256xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %all = memref.alloc() : memref<256x32768xf32>
  %max = memref.alloc() : memref<256xf32>
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 32768 {
      %d = affine.for %k = 0 to 64 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %x[%i, %k] : memref<256x64xf32>
        %b = affine.load %y[%j, %k] : memref<32768x64xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %d, %all[%i, %j] : memref<256x32768xf32>
    }
  }
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 32768 iter_args(%s = %low) -> (f32) {
      %a = affine.load %all[%i, %j] : memref<256x32768xf32>
      %t = arith.maximumf %s, %a : f32
      affine.yield %t : f32
    }
    affine.store %r, %max[%i] : memref<256xf32>
  }
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 32768 iter_args(%s = %zero) -> (f32) {
      %a = affine.load %all[%i, %j] : memref<256x32768xf32>
      %m = affine.load %max[%i] : memref<256xf32>
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      %t = arith.addf %s, %e fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %out[%i] : memref<256xf32>
  }
  %all2 = memref.alloc() : memref<256x32768xf32>
  %mean = memref.alloc() : memref<256xf32>
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 32768 {
      %d = affine.for %k = 0 to 64 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %x[%i, %k] : memref<256x64xf32>
        %b = affine.load %y[%j, %k] : memref<32768x64xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %d, %all2[%i, %j] : memref<256x32768xf32>
    }
  }
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 32768 iter_args(%s = %zero) -> (f32) {
      %a = affine.load %all2[%i, %j] : memref<256x32768xf32>
      %t = arith.addf %s, %a fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %mean[%i] : memref<256xf32>
  }
  affine.for %i = 0 to 256 {
    %r = affine.for %j = 0 to 32768 iter_args(%s = %zero) -> (f32) {
      %a = affine.load %all2[%i, %j] : memref<256x32768xf32>
      %m = affine.load %mean[%i] : memref<256xf32>
      %d = arith.subf %a, %m fastmath<reassoc,contract> : f32
      %e = math.exp %d : f32
      %t = arith.addf %s, %e fastmath<reassoc,contract> : f32
      affine.yield %t : f32
    }
    affine.store %r, %out2[%i] : memref<256xf32>
  }
  return
}
